/** Talks to the REST API: JSON in and out, the CSRF token from its cookie, problem documents as errors. */
class ApiError extends Error {
  /**
   * @param {string} message for people
   * @param {number} status the HTTP status; 0 when the server could not be reached or understood
   * @param {{field: string, detail: string}[]} [errors]
   */
  constructor(message, status, errors = []) {
    super(message);
    this.status = status;
    this.errors = errors;
  }
}

/** The cookie first: it is new after a log-in in another tab, when the page's own token is void. */
function csrfToken() {
  const cookie = document.cookie.match(/(?:^|;\s*)csrftoken=([^;]+)/);
  return cookie ? cookie[1] : (document.querySelector('meta[name="csrf-token"]')?.content ?? "");
}

/** Any page with a form gives the cookie again to a browser that lost it. */
async function renewCsrfToken() {
  await fetch("/", { credentials: "same-origin", headers: { Accept: "text/html" } });
}

/** Whose page this is: the server refuses what it asks after somebody else has logged in in another tab. */
function owner() {
  const user = document.querySelector('meta[name="user-id"]')?.content;
  return user ? { "X-Annotator": user } : {};
}

async function send(path, { method, body, raw, form, signal, headers, keepalive, blob }) {
  const all = { Accept: "application/json", ...owner(), ...headers };
  if (method !== "GET") all["X-CSRFToken"] = csrfToken();
  if (body !== undefined) all["Content-Type"] = "application/json";
  if (raw !== undefined) all["Content-Type"] = "application/octet-stream";
  const response = await fetch(path, {
    method,
    headers: all,
    signal,
    keepalive,
    credentials: "same-origin",
    body: body === undefined ? (raw ?? form) : JSON.stringify(body),
  });
  let data = null;
  try {
    if (blob && response.ok) data = await response.blob();
    else data = response.status === 204 ? null : await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    if (response.ok) throw new ApiError("The server's answer could not be read.", 0);
  }
  return { response, data };
}

/**
 * Resolves to the parsed body; rejects with ApiError (status 0 when the server could not be reached), or with the
 * signal's AbortError or TimeoutError.
 *
 * @param {string} path
 * @param {{method?: string, body?: unknown, raw?: Blob, form?: FormData, signal?: AbortSignal, headers?: Record<string, string>,
 *   keepalive?: boolean, blob?: boolean}} [options] `keepalive` lets a request of up to 64 KiB outlive its page; with
 *   `blob` the body is a file
 */
export async function api(path, options = {}) {
  const request = { method: "GET", ...options };
  try {
    let answer = await send(path, request);
    if (answer.response.status === 403 && String(answer.data?.detail).startsWith("CSRF")) {
      await renewCsrfToken();
      answer = await send(path, request);
    }
    const { response, data } = answer;
    if (response.ok) return data;
    const detail = data?.detail || data?.title || `The server answered ${response.status}.`;
    throw new ApiError(detail, response.status, data?.errors || []);
  } catch (error) {
    if (error instanceof ApiError || request.signal?.aborted) throw error;
    throw new ApiError("The server can't be reached.", 0);
  }
}

/** A version 4 UUID; crypto.randomUUID exists on secure origins only, this works on any. */
export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
