// Plots of what the tasks of a job report: lines over time, drawn as SVG.
"use strict";

// Which of eight colours a task has.
headwater.colour = (name) => {
  const [, role, index] = /^(\w+)-(\d+)$/.exec(name) || [null, "", "0"];
  return ({ ps: 4, chief: 6, evaluator: 7 }[role] ?? 0) + (Number(index) % ({ ps: 2, worker: 4 }[role] ?? 1));
};

headwater.plots = function (place) {
  const WIDTH = 480, HEIGHT = 220, LEFT = 54, RIGHT = 10, TOP = 10, BOTTOM = 28, MOST = 400;
  const KINDS = [
    { key: "loss", title: "Loss", of: (now) => now.loss },
    { key: "steps_per_s", title: "Steps per second", of: (now) => now.steps_per_s, zero: true },
    { key: "step", title: "Step", of: (now) => now.step },
    { key: "cpu", title: "CPU, in cores", of: (now, before) => rate(now, before), zero: true },
    { key: "memory", title: "Memory, MiB", of: (now) => now.usage && now.usage.memory_bytes / 2 ** 20, zero: true },
    { key: "gpu", title: "GPU, share busy", of: (now) => now.usage && now.usage.gpu_utilization, zero: true },
    { key: "gpu_memory", title: "GPU memory, MiB", of: (now) => now.usage && now.usage.gpu_memory_bytes !== null ? now.usage.gpu_memory_bytes / 2 ** 20 : null, zero: true },
  ];
  const series = new Map(KINDS.map((kind) => [kind.key, new Map()]));
  const last = new Map();
  const figures = new Map();
  let start = Infinity;

  function rate(now, before) {
    if (!now.usage || !before || !before.usage || now.at - before.at < 0.5) return null;
    const used = now.usage.cpu_s - before.usage.cpu_s;
    return used < 0 ? null : used / (now.at - before.at);
  }

  const svg = (name, attributes, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  // Of many points every other one goes, so that a long run keeps its shape.
  const thin = (points) => {
    if (points.length > 2 * MOST) points.splice(0, points.length, ...points.filter((_, index) => index % 2 === 0));
  };

  const ticks = (low, high) => {
    const rough = (high - low) / 5 || 1;
    const size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * size).find((candidate) => candidate >= rough);
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(at);
    return found;
  };

  const shown = (value) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e6 || size < 1e-3) return value.toExponential(1).replace("e+", "e");
    return size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
  };
  const time = (seconds) => (seconds >= 5400 ? `${shown(seconds / 3600)} h` : seconds >= 120 ? `${shown(seconds / 60)} min` : `${shown(seconds)} s`);

  function draw(kind) {
    const lines = [...series.get(kind.key)].filter(([, points]) => points.length);
    if (!lines.length) return;
    if (!figures.has(kind.key)) {
      const figure = document.createElement("figure");
      const caption = document.createElement("figcaption");
      const legend = document.createElement("ul");
      caption.textContent = kind.title;
      figure.append(caption, svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" }), legend);
      figures.set(kind.key, figure);
      place.replaceChildren(...KINDS.flatMap(({ key }) => figures.get(key) ?? []));
    }
    const [, picture, legend] = figures.get(kind.key).children;
    const all = lines.flatMap(([, points]) => points);
    const from = Math.min(...all.map(([at]) => at)), until = Math.max(...all.map(([at]) => at), from + 1);
    const values = all.map(([, value]) => value);
    let low = Math.min(...values, ...(kind.zero ? [0] : [])), high = Math.max(...values);
    if (high - low < 1e-9 * Math.max(1, Math.abs(high))) { high += Math.abs(high) * 0.1 || 1; low -= kind.zero ? 0 : Math.abs(low) * 0.1; }
    const x = (at) => LEFT + ((at - from) / (until - from)) * (WIDTH - LEFT - RIGHT);
    const y = (value) => TOP + ((high - value) / (high - low)) * (HEIGHT - TOP - BOTTOM);
    const parts = [];
    for (const value of ticks(low, high)) {
      parts.push(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }));
      parts.push(svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, shown(value)));
    }
    for (const at of ticks(from - start, until - start))
      parts.push(svg("text", { x: x(at + start), y: HEIGHT - 8, "text-anchor": "middle" }, time(at)));
    for (const [name, points] of lines) {
      const colour = `task-${headwater.colour(name)}`;
      const path = points.map(([at, value], index) => `${index ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
      if (points.length === 1) parts.push(svg("circle", { class: colour, cx: x(points[0][0]), cy: y(points[0][1]), r: 2.5 }));
      else parts.push(svg("path", { class: colour, d: path }));
    }
    picture.replaceChildren(...parts);
    const latest = lines.map(([name, points]) => [name, shown(points[points.length - 1][1])]);
    picture.setAttribute("aria-label", `${kind.title}: ${latest.map((pair) => pair.join(" ")).join(", ")}`);
    legend.replaceChildren(...latest.map(([name, value]) => {
      const entry = document.createElement("li");
      const colour = document.createElement("span");
      colour.className = `dot task-${headwater.colour(name)}`;
      entry.append(colour, `${name} ${value}`);
      return entry;
    }));
  }

  return {
    // Adds what a task reported at one moment: {task, at, step, steps_per_s, loss, usage}.
    add(now) {
      const before = last.get(now.task);
      if (before && now.at <= before.at) return;
      start = Math.min(start, now.at);
      for (const kind of KINDS) {
        const value = kind.of(now, before);
        if (typeof value !== "number" || !Number.isFinite(value)) continue;
        const lines = series.get(kind.key);
        if (!lines.has(now.task)) lines.set(now.task, []);
        lines.get(now.task).push([now.at, value]);
        thin(lines.get(now.task));
      }
      last.set(now.task, now);
    },
    draw() {
      KINDS.forEach(draw);
      if (!figures.size && !place.children.length) {
        const nothing = document.createElement("p");
        nothing.className = "help";
        nothing.textContent = "Nothing has been reported yet.";
        place.append(nothing);
      }
    },
  };
};
