// The gateway's REST, asked with the reader's token.

import { readToken } from "./token.mjs";

// What the gateway refused, or why it could not be asked: status 0.
export class ApiError extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

// The gateway serves this page below its own root, wherever a proxy has put that.
const ROOT = new URL("../", document.baseURI);

// Ask for a path relative to the gateway's root. Throws ApiError.
export async function ask(path, { method = "GET", etag = "", signal } = {}) {
  const headers = { Authorization: `Bearer ${readToken()}` };
  if (etag) {
    headers["If-None-Match"] = etag;
  }
  let response;
  try {
    response = await fetch(new URL(path, ROOT), {
      method,
      headers,
      signal,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") {
      throw error;
    }
    throw new ApiError(0, "the gateway does not answer");
  }
  if (response.status === 304) {
    return { status: 304, value: null, etag };
  }
  const text = await response.text();
  const value = text && response.headers.get("Content-Type")?.startsWith("application/json") ? JSON.parse(text) : null;
  if (!response.ok) {
    throw new ApiError(response.status, value?.reason ?? `the gateway answers with ${response.status}`);
  }
  return {
    status: response.status,
    value,
    etag: response.headers.get("ETag") ?? "",
    leader: response.headers.get("X-Scalable-Topics-Leader") ?? "",
  };
}

// What a path answers, asked for again and again, and sent only when it is another.
export class Resource {
  constructor(path, everySeconds = 0) {
    this.path = path;
    this.everyMs = everySeconds * 1000;
    this.value = null;
    this.reason = "";
    this.leader = "";
    this.version = 0;
    this.etag = "";
    this.askedAt = -Infinity;
    this.pending = null;
  }

  // Ask if it is time to, and nobody is asking. Throws ApiError 401 and 0, which are about everything; else the reason
  // is kept.
  refresh(signal) {
    if (this.pending === null && performance.now() - this.askedAt >= this.everyMs) {
      this.askedAt = performance.now();
      this.pending = this.#ask(signal).finally(() => {
        this.pending = null;
      });
    }
    return this.pending;
  }

  // Ask at the next time, however short ago it was asked for.
  hurry() {
    this.askedAt = -Infinity;
  }

  async #ask(signal) {
    try {
      const answer = await ask(this.path, { etag: this.etag, signal });
      if (answer.status !== 304) {
        this.value = answer.value;
        this.etag = answer.etag;
        this.version += 1;
      }
      this.leader = answer.leader || this.leader;
      this.reason = "";
    } catch (error) {
      if (!(error instanceof ApiError) || error.status === 401 || error.status === 0) {
        throw error;
      }
      this.version += this.reason === error.message ? 0 : 1;
      this.reason = error.message;
    }
  }
}
