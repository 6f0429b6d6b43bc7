// The form's archive: uploaded as soon as it is chosen, so that the job can refer to it by its digest.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const chosen = document.getElementById("upload");
  const form = chosen.form;
  const name = form.elements["archive"];
  const digest = form.elements["archive.digest"];
  const submit = form.querySelector("button.main");
  const remove = document.getElementById("upload-remove");
  const state = document.getElementById("upload-state");
  const headers = JSON.parse(document.body.getAttribute("hx-headers"));
  let request = null;

  const size = (bytes) => {
    const units = ["bytes", "KiB", "MiB", "GiB"];
    const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
    return `${(bytes / 1024 ** power).toFixed(power ? 1 : 0)} ${units[power]}`;
  };
  const show = (text, wrong = false) => {
    // A browser does not tell of the same choice twice, and the file may be another one by then.
    if (wrong) chosen.value = "";
    state.textContent = text;
    state.classList.toggle("wrong", wrong);
    chosen.toggleAttribute("aria-invalid", wrong);
  };
  // What the form says has changed: the job file beside it has to follow.
  const set = (file, handedIn = "") => {
    name.value = file;
    digest.value = handedIn;
    name.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const forget = () => {
    request?.abort();
    request = null;
    submit.disabled = false;
    remove.hidden = true;
    set("");
  };

  chosen.addEventListener("change", () => {
    forget();
    const [file] = chosen.files;
    if (!file) return show("");
    const most = Number(chosen.dataset.maxBytes);
    if (file.size > most) return show(`${file.name} has ${size(file.size)}; the maximum is ${size(most)}.`, true);
    const own = (request = new XMLHttpRequest());
    own.open("PUT", "/api/v1/archives");
    for (const [header, value] of Object.entries(headers)) own.setRequestHeader(header, value);
    own.upload.addEventListener("progress", ({ loaded, total }) => {
      if (own === request && total) show(`${file.name}: ${Math.floor((100 * loaded) / total)} % uploaded`);
    });
    own.addEventListener("loadend", () => {
      if (own !== request) return;
      request = null;
      submit.disabled = false;
      let answer = {};
      try { answer = JSON.parse(own.responseText); } catch { /* the server ended, or a proxy answered */ }
      if (own.status !== 201) return show(`${file.name} was rejected: ${answer.message ?? "the server does not answer"}`, true);
      show(`${file.name}, ${size(file.size)}, is uploaded.`);
      remove.hidden = false;
      set(file.name, answer.digest);
    });
    submit.disabled = true;
    show(`${file.name} is being uploaded`);
    own.send(file);
  });

  remove.addEventListener("click", () => {
    chosen.value = "";
    forget();
    show("");
    chosen.focus();
  });
});
