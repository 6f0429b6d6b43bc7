// A job's page: its stream feeds the overview, the plots and the log.
"use strict";

document.addEventListener("DOMContentLoaded", async () => {
  const overview = document.getElementById("overview");
  const jobId = overview.dataset.job;
  const OVER = ["succeeded", "failed", "stopped"], SAMPLES_MS = 4000;
  let phase = overview.dataset.phase;
  const over = () => OVER.includes(phase);
  const plots = headwater.plots(document.getElementById("plots"), { smoothing: document.getElementById("smoothing") });
  const logs = headwater.logs(jobId, over);
  const buttons = () => {
    for (const element of document.querySelectorAll("[data-while]"))
      element.hidden = (element.dataset.while === "over") !== over();
  };
  buttons();

  // One part of the page alone, over its full width, or all of it.
  const views = [...document.querySelectorAll("[data-view]")];
  const show = (view) => {
    document.body.dataset.shown = view;
    for (const button of views) button.setAttribute("aria-pressed", String(button.dataset.view === view));
    window.dispatchEvent(new Event("resize"));
  };
  for (const button of views) button.addEventListener("click", () => show(button.dataset.view));
  if (location.hash === "#logs") show("logs");

  // A task in the picture, the table or an event leads to its log.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-log]");
    if (!link) return;
    event.preventDefault();
    logs.choose(link.dataset.log);
    const title = document.getElementById("logs-title");
    title.scrollIntoView();
    document.getElementById("log").focus({ preventScroll: true });
  });

  let latest = 0, asked = 0;
  const sample = async () => {
    asked = Date.now();
    const answer = await fetch(`/api/v1/jobs/${jobId}/samples?after=${latest}`);
    if (!answer.ok) return;
    for (const entry of await answer.json()) {
      plots.add(entry);
      latest = Math.max(latest, entry.at);
    }
    plots.draw();
  };
  await sample();

  const begun = Date.now();
  const stream = headwater.stream(`/api/v1/jobs/${jobId}/stream`, {
    event(entry) {
      if (entry.at * 1000 > begun) headwater.announce(`${entry.task} ${entry.kind}: ${entry.text}`);
    },
    job(job) {
      const was = over();
      phase = job.phase;
      headwater.changed();
      buttons();
      logs.tasks(job.tasks.map((task) => task.name));
      // Uses only the server's clock; the browser's may differ.
      if (over() || Date.now() - asked > SAMPLES_MS) sample();
      if (was && !over()) logs.reopen();
    },
  }, { done: over });

  // A job that is over may be started again: the answer to the button's request says so at the button.
  document.body.addEventListener("headwater:changed", (event) => {
    if (over() && event.target !== document.body) {
      phase = "";
      stream.reopen();
    }
  });
});
