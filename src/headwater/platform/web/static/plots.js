// Plots of what tasks report over time: hover for values, drag to zoom, double click for all. Drawn by uPlot.
"use strict";

// Which of eight colours a task has.
headwater.colour = (name) => {
  const [, role, index] = /^(\w+)-(\d+)$/.exec(name) || [null, "", "0"];
  return ({ ps: 4, chief: 6, evaluator: 7 }[role] ?? 0) + (Number(index) % ({ ps: 2, worker: 4 }[role] ?? 1));
};

// Draws into `place`. `colour` returns the colour number of a line; `smoothing` is the input element of the smoothing factor.
headwater.plots = function (place, { colour = headwater.colour, smoothing = null } = {}) {
  const MOST = 2000, HEIGHT = 190;
  const KINDS = [
    { key: "loss", title: "Loss", of: (now) => now.loss, smooth: true,
      empty: "No loss was reported or printed. A program can print “Step: 10, loss: 0.5” or call headwater.report(loss=…)." },
    { key: "steps_per_s", title: "Steps per second", of: (now) => now.steps_per_s, zero: true, smooth: true,
      empty: "No steps were reported." },
    { key: "step", title: "Step", of: (now) => now.step, empty: "No steps were reported or printed." },
    { key: "cpu", title: "CPU, in cores", of: (now, before) => rate(now, before), zero: true, smooth: true,
      empty: "No measurements: the job was too short, or its backend does not report resource usage." },
    { key: "memory", title: "Memory, MiB", of: (now) => now.usage && now.usage.memory_bytes / 2 ** 20, zero: true,
      empty: "No measurements: the job was too short, or its backend does not report resource usage." },
    { key: "gpu", title: "GPU utilization", of: (now) => now.usage && now.usage.gpu_utilization, zero: true },
    { key: "gpu_memory", title: "GPU memory, MiB", of: (now) => now.usage && now.usage.gpu_memory_bytes !== null ? now.usage.gpu_memory_bytes / 2 ** 20 : null, zero: true },
  ];
  const series = new Map(KINDS.map((kind) => [kind.key, new Map()]));
  const last = new Map(), figures = new Map();
  let start = Infinity;

  function rate(now, before) {
    if (!now.usage || !before || !before.usage || now.at - before.at < 0.5) return null;
    const used = now.usage.cpu_s - before.usage.cpu_s;
    return used < 0 ? null : used / (now.at - before.at);
  }

  // Of many points every other one goes, so that a long run keeps its shape.
  const thin = (points) => {
    if (points.length > 2 * MOST) points.splice(0, points.length, ...points.filter((_, index) => index % 2 === 0));
  };
  const shown = (value) => {
    if (value === null || value === undefined) return "–";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e6 || size < 1e-3) return value.toExponential(1).replace("e+", "e");
    return size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
  };
  const time = (seconds) => (seconds >= 5400 ? `${shown(seconds / 3600)} h` : seconds >= 120 ? `${shown(seconds / 60)} min` : `${shown(seconds)} s`);
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const smoothed = (values) => {
    const share = Number(smoothing?.value ?? 0);
    let mean = null;
    return share ? values.map((value) => (mean = mean === null ? value : share * mean + (1 - share) * value)) : values;
  };

  function tables(kind) {
    const lines = [...series.get(kind.key)].filter(([, points]) => points.length);
    lines.sort(([one], [other]) => one.localeCompare(other, undefined, { numeric: true }));
    const data = lines.map(([, points]) => {
      const values = points.map(([, value]) => value);
      return [points.map(([at]) => at - start), kind.smooth ? smoothed(values) : values];
    });
    return [lines.map(([name]) => name), data.length ? uPlot.join(data) : null];
  }

  function figure(kind) {
    if (!figures.has(kind.key)) {
      const element = document.createElement("figure");
      const caption = document.createElement("figcaption");
      const chart = document.createElement("div");
      caption.textContent = kind.title;
      element.append(caption, chart);
      figures.set(kind.key, { element, chart, plot: null, names: "" });
      place.replaceChildren(...KINDS.flatMap(({ key }) => figures.get(key)?.element ?? []));
    }
    return figures.get(kind.key);
  }

  function draw(kind) {
    const [names, data] = tables(kind);
    if (!data) {
      if (!kind.empty) return;
      const { chart } = figure(kind);
      chart.className = "help nothing";
      chart.textContent = kind.empty;
      return;
    }
    const own = figure(kind);
    const latest = names.map((name) => `${name} ${shown(series.get(kind.key).get(name).at(-1)[1])}`);
    own.chart.setAttribute("role", "img");
    own.chart.setAttribute("aria-label", `${kind.title}: ${latest.join(", ")}`);
    if (own.plot && own.names === names.join()) {
      const { min, max } = own.plot.scales.x, all = own.plot.data[0];
      const zoomed = min > all[0] || max < all.at(-1);
      own.plot.setData(data, !zoomed);
      if (zoomed) own.plot.setScale("x", { min, max });
      return;
    }
    own.plot?.destroy();
    own.names = names.join();
    own.chart.className = "";
    own.chart.replaceChildren();
    const axis = { stroke: style("--quiet"), grid: { stroke: style("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    own.plot = new uPlot({
      width: Math.max(200, own.chart.clientWidth), height: HEIGHT,
      cursor: { sync: { key: "headwater" }, drag: { x: true, y: false } },
      legend: { live: true },
      scales: { x: { time: false }, y: { range: (_, low, high) => {
        const from = kind.zero ? Math.min(0, low ?? 0) : low ?? 0, until = kind.zero && low === 0 && high === 0 ? 1 : high ?? 1;
        const room = (until - from || Math.abs(until) || 1) * 0.06;
        return [kind.zero ? from : from - room, until + room];
      } } },
      axes: [
        { ...axis, size: 28, values: (_, at) => at.map(time) },
        { ...axis, size: 56, values: (_, values) => values.map(shown) },
      ],
      series: [
        { label: "after", value: (_, at) => (at === null ? "–" : time(at)) },
        ...names.map((name) => ({ label: name, stroke: style(`--t${colour(name) % 8}`), width: 1.6, spanGaps: true, points: { show: data[0].length < 2 }, value: (_, value) => shown(value) })),
      ],
    }, data, own.chart);
  }

  const redraw = () => { for (const own of figures.values()) own.names = ""; KINDS.forEach(draw); };
  const resize = () => { for (const { plot, chart } of figures.values()) plot?.setSize({ width: Math.max(200, chart.clientWidth), height: HEIGHT }); };
  new ResizeObserver(resize).observe(place);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  smoothing?.addEventListener("input", () => KINDS.forEach(draw));

  return {
    // Adds what a task told at one moment: {task, at, step, steps_per_s, loss, metrics, usage}. All times are the server's.
    add(now, line = now.task) {
      const before = last.get(line);
      if (before && now.at <= before.at) return;
      start = Math.min(start, now.at);
      for (const name of Object.keys(now.metrics ?? {})) {
        const key = `metric ${name}`;
        if (series.has(key)) continue;
        series.set(key, new Map());
        // What is told of one table stands together.
        const table = /^(table .*?|all tables): /.exec(name)?.[0] ?? null;
        const alike = table ? KINDS.findLastIndex((kind) => kind.title.startsWith(table)) : -1;
        const after = alike >= 0 ? alike : Math.max(0, KINDS.findLastIndex((kind) => kind.key.startsWith("metric ")));
        KINDS.splice(after + 1, 0, { key, title: name, of: (sample) => sample.metrics?.[name], smooth: true, zero: table !== null });
      }
      for (const kind of KINDS) {
        const value = kind.of(now, before);
        if (typeof value !== "number" || !Number.isFinite(value)) continue;
        const lines = series.get(kind.key);
        if (!lines.has(line)) lines.set(line, []);
        lines.get(line).push([now.at, value]);
        thin(lines.get(line));
      }
      last.set(line, now);
    },
    draw: () => KINDS.forEach(draw),
  };
};
