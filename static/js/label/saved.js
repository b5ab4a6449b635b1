/** What of one's judgments is saved, what waits, and why. */
import { counted } from "./panel-tools.js";

function notice(studio, { waiting, problem }) {
  const one = waiting === 1;
  const kept = `${one ? "It is" : "They are"} kept in this browser and sent`;
  const theirs = `${counted(waiting, "judgment")} ${one ? "waits" : "wait"}. ${kept}`;
  const retry = { label: "Try now", run: () => studio.outbox.retryNow() };
  const login = { label: "Log in", href: studio.root.dataset.login };
  switch (problem.kind) {
    case "offline":
      return { text: `There is no connection to the server. ${theirs} when it is back.`, actions: [retry] };
    case "logged_out":
      return { text: `You are logged out. ${theirs} when you have logged in again.`, actions: [login, retry] };
    case "other_user":
      return {
        text: `Somebody else has logged in in this browser. ${theirs} when you log in again.`,
        actions: [login, retry],
      };
    case "full":
      return { text: `${problem.message} ${theirs} when there is room.`, actions: [retry] };
    default:
      return { text: `${problem.message} ${theirs} again by itself.`, actions: [retry] };
  }
}

const SHORT = {
  offline: "Offline",
  logged_out: "Logged out",
  other_user: "Other user",
  full: "Disk full",
  server: "Not answered",
};

function inShort({ waiting, saved, problem, elsewhere }) {
  const done = saved.toLocaleString("en");
  const counts = `${waiting.toLocaleString("en")} waiting, ${done} saved`;
  if (waiting) return problem ? `${SHORT[problem.kind]} · ${counts}` : counts;
  if (elsewhere) return `All saved here · ${elsewhere} waiting elsewhere`;
  return saved ? `All saved · ${done}` : "All saved";
}

/** @param {import("./studio.js").Studio} studio */
export function mountSaved(studio) {
  const node = studio.root.querySelector("[data-saved]");
  const text = node.querySelector("[data-saved-text]");
  let hadProblem = false;
  const render = () => {
    const { waiting, problem, durable } = studio.outbox;
    const troubled = Boolean(problem && waiting);
    const words = inShort(studio.outbox);
    text.textContent = words;
    node.title = words;
    node.classList.toggle("waiting", waiting > 0 && !troubled);
    node.classList.toggle("trouble", troubled);
    if (troubled) studio.notices.show("outbox", { kind: "warning", ...notice(studio, studio.outbox) });
    else studio.notices.hide("outbox");
    if (hadProblem && !problem) studio.announce("The connection is back.");
    hadProblem = Boolean(problem);
    if (durable) studio.notices.hide("not-durable");
    else {
      studio.notices.show("not-durable", {
        kind: "warning",
        text:
          "This browser keeps nothing for later (a private window, or a full disk). " +
          "Don’t close this page before all is saved.",
      });
    }
  };
  studio.outbox.addEventListener("state", render);
  // What waits is kept in the browser and sent by the next page; only without that keeping it would be lost.
  window.addEventListener("beforeunload", (event) => {
    if (studio.outbox.waiting && !studio.outbox.durable) event.preventDefault();
  });
  render();
}
