// The live log of a job: lines as they come, by task, with a search. Lines are text, never markup.
"use strict";

headwater.logs = function (jobId, over) {
  const MOST_LINES = 5000;
  const box = document.getElementById("log");
  const task = document.getElementById("log-task");
  const search = document.getElementById("log-search");
  const follow = document.getElementById("log-follow");
  const count = document.getElementById("log-count");
  let pending = [];
  let hits = 0;

  const matches = (line) => !search.value || line.toLowerCase().includes(search.value.toLowerCase());

  const fill = (element, line) => {
    const wanted = search.value.toLowerCase();
    const parts = [];
    let from = 0;
    if (wanted) {
      const lower = line.toLowerCase();
      for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
        const mark = document.createElement("mark");
        mark.textContent = line.slice(at, at + wanted.length);
        parts.push(line.slice(from, at), mark);
        from = at + wanted.length;
      }
    }
    element.replaceChildren(...parts, line.slice(from));
  };

  const show = (row) => {
    const shown = matches(row.line);
    row.element.hidden = !shown;
    if (shown) fill(row.text, row.line);
    hits += shown;
  };

  let rows = [];
  const tell = () => {
    const all = `${rows.length} line${rows.length === 1 ? "" : "s"}`;
    count.textContent = search.value ? `${hits} of ${all}` : all;
  };

  const flush = () => {
    const lines = pending;
    pending = [];
    const part = document.createDocumentFragment();
    for (const { task: name, line } of lines.slice(-MOST_LINES)) {
      const element = document.createElement("div");
      const label = document.createElement("span");
      const text = document.createElement("span");
      label.className = `from task-${headwater.colour(name)}`;
      label.textContent = name;
      element.append(label, text);
      const row = { element, text, line };
      fill(text, line);
      show(row);
      rows.push(row);
      part.append(element);
    }
    box.append(part);
    for (const row of rows.splice(0, Math.max(0, rows.length - MOST_LINES))) {
      hits -= !row.element.hidden;
      row.element.remove();
    }
    tell();
    if (follow.checked) box.scrollTop = box.scrollHeight;
  };

  const clear = () => {
    pending = [];
    rows = [];
    hits = 0;
    box.replaceChildren();
    tell();
  };

  const address = () => {
    const query = new URLSearchParams({ tail: "1000" });
    if (task.value) query.set("task", task.value);
    return `/api/v1/jobs/${jobId}/logs?${query}`;
  };
  const stream = headwater.stream(address, {
    message(entry) {
      if (!pending.length) requestAnimationFrame(flush);
      pending.push(entry);
    },
  }, { opened: clear, done: over });

  task.addEventListener("change", () => stream.reopen());
  search.addEventListener("input", () => {
    hits = 0;
    rows.forEach(show);
    tell();
    if (follow.checked) box.scrollTop = box.scrollHeight;
  });
  follow.addEventListener("change", () => { if (follow.checked) box.scrollTop = box.scrollHeight; });
  box.addEventListener("wheel", (event) => { if (event.deltaY < 0) follow.checked = false; }, { passive: true });
  document.getElementById("log-form").addEventListener("submit", (event) => event.preventDefault());

  return {
    reopen: stream.reopen,
    // Tasks come and go when a job is scaled.
    tasks(names) {
      const known = [...task.options].slice(1).map((option) => option.value);
      if (known.join() === names.join()) return;
      const chosen = task.value;
      task.replaceChildren(task.options[0], ...names.map((name) => new Option(name)));
      task.value = names.includes(chosen) ? chosen : "";
      stream.reopen();
    },
  };
};
