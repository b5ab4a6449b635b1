/** Talks to the REST API: JSON in and out, the CSRF token from its cookie, problem documents as errors. */

export class ApiError extends Error {
  constructor(message, status, errors = []) {
    super(message);
    this.status = status;
    this.errors = errors;
  }
}

function csrfToken() {
  const meta = document.querySelector('meta[name="csrf-token"]');
  return meta ? meta.content : "";
}

/**
 * Resolves to the parsed body; rejects with ApiError (status 0 when the server could not be reached).
 */
export async function api(path, { method = "GET", body, signal } = {}) {
  const headers = { Accept: "application/json" };
  if (method !== "GET") headers["X-CSRFToken"] = csrfToken();
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      signal,
      credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server can't be reached.", 0);
  }
  let data = null;
  try {
    data = response.status === 204 ? null : await response.json();
  } catch {
    if (response.ok) throw new ApiError("The server's answer could not be read.", 0);
  }
  if (!response.ok) {
    const detail = data?.detail || data?.title || `The server answered ${response.status}.`;
    throw new ApiError(detail, response.status, data?.errors || []);
  }
  return data;
}

/** A version 4 UUID; crypto.randomUUID exists on secure origins only, this works on any. */
export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
