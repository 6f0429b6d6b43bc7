// A job's page: its stream feeds the overview, the plots and the log.
"use strict";

document.addEventListener("DOMContentLoaded", async () => {
  const overview = document.getElementById("overview");
  const jobId = overview.dataset.job;
  const OVER = ["succeeded", "failed", "stopped"];
  let phase = overview.dataset.phase;
  const over = () => OVER.includes(phase);
  const plots = headwater.plots(document.getElementById("plots"));
  const logs = headwater.logs(jobId, over);
  const buttons = () => {
    for (const element of document.querySelectorAll("[data-while]"))
      element.hidden = (element.dataset.while === "over") !== over();
  };
  buttons();

  const answer = await fetch(`/api/v1/jobs/${jobId}/samples`);
  if (answer.ok) (await answer.json()).forEach(plots.add);
  plots.draw();

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
      const at = Date.now() / 1000;
      for (const task of job.tasks)
        if (task.phase === "running")
          plots.add({ task: task.name, at, step: task.step, steps_per_s: task.steps_per_s, loss: task.loss, usage: task.usage });
      plots.draw();
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
