/** The form that submits a run: a file that is too large is refused before it is sent, and waiting is shown. */
import { make } from "./dom.js";

const form = document.querySelector("[data-submit-run]");

function megabytes(bytes) {
  return `${Math.max(0.1, bytes / (1024 * 1024)).toFixed(1)} MB`;
}

function checkSize(input, problem, send) {
  const most = Number(form.dataset.maxBytes);
  const file = input.files[0];
  const tooLarge = file !== undefined && file.size > most;
  problem.hidden = !tooLarge;
  problem.replaceChildren();
  if (tooLarge) {
    const sizes = `The file has ${megabytes(file.size)}; at most ${megabytes(most)} are accepted.`;
    problem.append(make("li", { text: `${sizes} Compress it with gzip, or leave out low ranks.` }));
  }
  send.disabled = tooLarge;
}

if (form) {
  const input = form.querySelector('input[type="file"]');
  const problem = form.querySelector("[data-file-error]");
  const send = form.querySelector("[data-send]");
  input.addEventListener("change", () => checkSize(input, problem, send));
  checkSize(input, problem, send);
  form.addEventListener("submit", () => {
    form.querySelector("[data-sending]").hidden = false;
    // Not at once: a disabled button would keep the form from being sent.
    setTimeout(() => (send.disabled = true), 0);
  });
  // Back from the next page, the form can be sent again.
  window.addEventListener("pageshow", () => {
    form.querySelector("[data-sending]").hidden = true;
    checkSize(input, problem, send);
  });
}
