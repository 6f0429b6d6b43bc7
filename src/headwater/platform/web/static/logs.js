// The log of a job: lines as they come, in the order of time, by task; a search over all of it at the server. Lines are
// text, never markup.
"use strict";

headwater.logs = function (jobId, over) {
  const MOST_LINES = 5000, FIRST = 1000;
  const [box, task, search, follow, count, more, download] =
    ["log", "log-task", "log-search", "log-follow", "log-count", "log-more", "log-download"].map((id) => document.getElementById(id));
  let pending = [], rows = 0, dropped = 0, whole = true, cursor = null, searching = 0;

  const clock = (at) => {
    if (at === null || at === undefined) return "";
    const when = new Date(at * 1000), two = (value) => String(value).padStart(2, "0");
    return `${two(when.getHours())}:${two(when.getMinutes())}:${two(when.getSeconds())}`;
  };
  const fill = (element, line) => {
    const wanted = search.value.toLowerCase(), parts = [];
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
  const row = ({ task: name, line, at }) => {
    const element = document.createElement("div");
    const [when, label, text] = ["time", "span", "span"].map((kind) => document.createElement(kind));
    when.textContent = clock(at);
    if (at) { when.dateTime = new Date(at * 1000).toISOString(); when.title = new Date(at * 1000).toLocaleString(); }
    label.className = `from task-${headwater.colour(name)}`;
    label.textContent = name;
    fill(text, line);
    element.append(when, label, text);
    return element;
  };
  const lines = (number) => `${number.toLocaleString("en")} line${number === 1 ? "" : "s"}`;
  const tell = () => {
    count.textContent = !dropped && whole ? lines(rows) : `The latest ${lines(rows)}; search and download include all lines.`;
  };
  const at_end = () => box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
  const flush = () => {
    const fresh = pending;
    // Somebody may have scrolled since the last lines came, of which the browser tells only later.
    if (follow.checked && !at_end()) follow.checked = false;
    pending = [];
    dropped += Math.max(0, fresh.length - MOST_LINES);
    const part = document.createDocumentFragment();
    for (const entry of fresh.slice(-MOST_LINES)) part.append(row(entry));
    rows += part.childElementCount;
    box.append(part);
    for (; rows > MOST_LINES; rows -= 1, dropped += 1) box.firstElementChild.remove();
    tell();
    if (follow.checked) box.scrollTop = box.scrollHeight;
  };
  const clear = () => {
    pending = [];
    rows = dropped = 0;
    box.replaceChildren();
  };

  const address = () => {
    const query = new URLSearchParams({ tail: FIRST });
    if (task.value) query.set("task", task.value);
    return `/api/v1/jobs/${jobId}/logs?${query}`;
  };
  let begun = 0;
  const stream = headwater.stream(address, {
    message(entry) {
      if (search.value) return;
      // What comes at once, and as much as was asked for, is not all of it.
      begun += 1;
      whole = begun < FIRST;
      if (!pending.length) requestAnimationFrame(flush);
      pending.push(entry);
    },
  }, { opened() { begun = 0; whole = true; if (!search.value) clear(); }, done: over });

  // Looks through all of the log, at the server: some lines at a time.
  const find = async () => {
    const own = (searching += 1);
    const query = new URLSearchParams({ text: search.value, limit: 500 });
    if (task.value) query.set("task", task.value);
    if (cursor) query.set("cursor", cursor);
    const answer = await fetch(`/api/v1/jobs/${jobId}/search?${query}`);
    if (own !== searching || !search.value) return;
    if (!answer.ok) return headwater.problem((await answer.json()).message);
    const found = await answer.json();
    if (!cursor) clear();
    const part = document.createDocumentFragment();
    for (const entry of found.lines) part.append(row(entry));
    rows += found.lines.length;
    box.append(part);
    cursor = found.cursor;
    more.hidden = !cursor;
    count.textContent = `${lines(rows)} with “${search.value}”${cursor ? " so far" : ""}`;
  };
  let soon = null;
  const look = () => {
    clearTimeout(soon);
    cursor = null;
    more.hidden = true;
    if (!search.value) { searching += 1; stream.reopen(); return; }
    soon = setTimeout(find, 250);
  };
  const address_of_all = () => {
    download.href = `/api/v1/jobs/${jobId}/download${task.value ? `?task=${task.value}` : ""}`;
  };

  task.addEventListener("change", () => { address_of_all(); if (search.value) look(); else stream.reopen(); });
  search.addEventListener("input", look);
  more.addEventListener("click", find);
  follow.addEventListener("change", () => { if (follow.checked) box.scrollTop = box.scrollHeight; });
  // However one scrolls: away from the end stops to follow, and back at the end goes on.
  box.addEventListener("scroll", () => { follow.checked = at_end(); }, { passive: true });
  window.addEventListener("resize", () => { if (follow.checked) box.scrollTop = box.scrollHeight; });
  document.getElementById("log-form").addEventListener("submit", (event) => event.preventDefault());
  address_of_all();

  return {
    reopen: stream.reopen,
    // Shows what one task printed.
    choose(name) {
      task.value = name;
      task.dispatchEvent(new Event("change"));
    },
    // Tasks come and go when a job is scaled.
    tasks(names) {
      const known = [...task.options].slice(1).map((option) => option.value);
      if (known.join() === names.join()) return;
      const chosen = task.value;
      task.replaceChildren(task.options[0], ...names.map((name) => new Option(name)));
      task.value = names.includes(chosen) ? chosen : "";
      if (!search.value) stream.reopen();
    },
  };
};
