// The curves of several jobs in one picture, each from the beginning of its own time.
"use strict";

document.addEventListener("DOMContentLoaded", async () => {
  const place = document.getElementById("plots");
  if (!place) return;  // nothing was chosen
  const jobs = JSON.parse(place.dataset.jobs);
  const numbers = new Map(jobs.map(({ label }, number) => [label, number]));
  const plots = headwater.plots(place, { colour: (name) => numbers.get(name) ?? 0, smoothing: document.getElementById("smoothing") });
  for (const { id, label } of jobs) {
    const answer = await fetch(`/api/v1/jobs/${id}/samples`);
    if (!answer.ok) continue;
    const samples = await answer.json();
    // Of a job's tasks the one that tells a loss, or else a step: with parameter servers that is a worker.
    const told = samples.find((sample) => sample.loss !== null) ?? samples.find((sample) => sample.step !== null) ?? samples[0];
    const own = samples.filter((sample) => sample.task === told?.task);
    for (const sample of own) plots.add({ ...sample, at: sample.at - own[0].at + 1 }, label);
  }
  plots.draw();
});
