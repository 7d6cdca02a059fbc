// The console: a page at a time, each asking the gateway for as long as it is shown.

import { ApiError } from "./api.mjs";
import { CHANGES } from "./change_dialog.mjs";
import { announce } from "./dom.mjs";
import { fleetPage } from "./fleet.mjs";
import { placeOf } from "./places.mjs";
import { signIn } from "./sign_in.mjs";
import { startTheme } from "./theme.mjs";
import { forgetToken, readToken } from "./token.mjs";
import { topicPage } from "./topic.mjs";

const main = document.getElementById("main");
const trouble = document.getElementById("trouble");
const leave = document.getElementById("leave");
const who = document.getElementById("who");
const changesButton = document.getElementById("changes");

let shown = new AbortController();

// Whether the reader has allowed changes: never before it was asked for, and not beyond this page's life.
const changes = {
  on: false,
  listeners: new EventTarget(),
  allowed: () => changes.on,
  listen: (listener, signal) => changes.listeners.addEventListener("changed", listener, { signal }),
  set(on) {
    changes.on = on;
    changesButton.setAttribute("aria-pressed", String(on));
    changesButton.textContent = on ? "Changes are allowed" : "Allow changes";
    document.documentElement.classList.toggle("changing", on);
    changes.listeners.dispatchEvent(new Event("changed"));
  },
};

function told({ user, may }) {
  who.textContent = user;
  changesButton.hidden = !CHANGES.some((one) => may.includes(one));
  if (changesButton.hidden && changes.on) {
    changes.set(false);
  }
}

function failed(error) {
  if (error instanceof ApiError && error.status === 401) {
    show(`${error.message}`);
    return;
  }
  const text = error === null ? "" : `${error.message}; trying again.`;
  if (trouble.textContent !== text) {
    trouble.textContent = text;
  }
}

function show(why = "") {
  shown.abort();
  shown = new AbortController();
  const { signal } = shown;
  trouble.textContent = "";
  changesButton.hidden = true;
  const signedIn = readToken() !== "" && why === "";
  leave.hidden = !signedIn;
  const page = signedIn ? pageAt(placeOf(location.hash), signal) : signIn(why, () => show());
  if (!signedIn) {
    forgetToken();
    who.textContent = "";
    changes.set(false);
  }
  document.title = `${page.title} – Scalable topics`;
  main.replaceChildren(page.element);
  page.start?.();
  (page.first ?? main.querySelector("h1")).focus();
  announce(page.title);
}

function pageAt(place, signal) {
  return place.page === "topic"
    ? topicPage({ ...place, signal, failed: guarded(signal), changes, told })
    : fleetPage({ signal, failed: guarded(signal) });
}

// What a page that is not shown any more has to say is of no interest.
function guarded(signal) {
  return (error) => signal.aborted || failed(error);
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
leave.addEventListener("click", () => {
  forgetToken();
  show();
});
changesButton.addEventListener("click", () => changes.set(!changes.on));
addEventListener("hashchange", () => show());
startTheme(document.getElementById("theme"));
show();
