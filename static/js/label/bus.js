/** What the tabs of one browser tell each other; silent where the browser has no BroadcastChannel. */

const NAME = "inquire-annotator";

/** This page among all tabs; a reload is another one. */
export const TAB = Array.from(crypto.getRandomValues(new Uint32Array(2)), (part) => part.toString(36)).join("");

class Bus extends EventTarget {
  constructor() {
    super();
    this.channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(NAME);
    if (this.channel) {
      this.channel.onmessage = ({ data }) => this.dispatchEvent(new CustomEvent(data.kind, { detail: data }));
    }
  }

  /** Whether other tabs hear; if not, they must look into the database now and then. */
  get works() {
    return this.channel !== null;
  }

  /** @param {{kind: "added"|"answer"|"refused"|"problem"|"dismissed", user: number}} message */
  post(message) {
    this.channel?.postMessage(message);
  }
}

export const bus = new Bus();
