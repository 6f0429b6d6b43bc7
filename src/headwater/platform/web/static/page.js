// Functions of all pages: a message when a request fails, event streams that are closed while the page is hidden, and
// announcements of events of jobs.
"use strict";

const headwater = {
  // Opens a stream of server-sent events. It is closed while the page is hidden and reopened when it is visible, because
  // a browser opens at most six connections to a server, for all its tabs together. `handlers` are called with each
  // event of their name, `opened` before the first; after `done` returns true the stream is not opened again.
  stream(address, handlers, { opened = () => {}, done = () => false } = {}) {
    let source = null;
    const close = () => { source?.close(); source = null; };
    const open = () => {
      if (source || document.hidden) return;
      source = new EventSource(typeof address === "function" ? address() : address);
      source.addEventListener("open", opened);
      for (const [name, handle] of Object.entries(handlers))
        source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
      // The server ends a stream that has nothing more to tell; the browser would ask again for ever.
      source.addEventListener("error", () => { if (done()) close(); });
    };
    document.addEventListener("visibilitychange", () => (document.hidden ? close() : done() || open()));
    window.addEventListener("pagehide", close);
    open();
    return { reopen() { close(); open(); }, close };
  },

  // Has everything that shows jobs fetched anew, soon: news come in bursts, of which the last must not be missed.
  changed() {
    headwater.news ??= setTimeout(() => {
      headwater.news = null;
      document.body.dispatchEvent(new CustomEvent("headwater:changed"));
    }, 400);
  },

  // Tells people who listen to the page rather than look at it.
  announce(text) { document.getElementById("announcements").textContent = text; },

  // Shows why something was not done.
  problem(text) {
    const toast = document.getElementById("problem");
    toast.firstElementChild.textContent = text;
    toast.hidden = !text;
  },
};

document.addEventListener("DOMContentLoaded", () => {
  document.querySelector("#problem button").addEventListener("click", () => headwater.problem(""));
  document.body.addEventListener("htmx:responseError", (event) => headwater.problem(event.detail.xhr.responseText));
  document.body.addEventListener("htmx:sendError", () => headwater.problem("The server does not answer."));
  document.body.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful && event.detail.requestConfig.verb !== "get") headwater.problem("");
  });
  // What was opened, ticked or scrolled stays so when a part of the page is fetched anew.
  let kept = [];
  document.body.addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
    kept = [...target.querySelectorAll("[id]")].map(({ id, open, checked, scrollTop, scrollLeft }) => ({ id, open, checked, scrollTop, scrollLeft }));
  });
  document.body.addEventListener("htmx:afterSwap", () => {
    for (const { id, ...state } of kept) {
      const element = document.getElementById(id);
      for (const [name, value] of Object.entries(state)) if (element && value) element[name] = value;
    }
  });
  // What was filled in before the scripts were there counts, too: whatever follows a form has to hear of it.
  const filled = (field) => (field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue);
  for (const field of document.querySelectorAll("form input, form textarea"))
    if (filled(field)) field.dispatchEvent(new Event("input", { bubbles: true }));
  const rows = document.querySelector("[data-stream]");
  if (rows) headwater.stream(rows.dataset.stream, {
    event(entry) {
      headwater.changed();
      headwater.announce(`${entry.job_id} ${entry.task}: ${entry.text}`);
    },
  });
});
