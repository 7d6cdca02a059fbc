// The page that asks for the token.

import { el } from "./dom.mjs";
import { keepToken } from "./token.mjs";

const HOW = "kubectl create token NAME --namespace NAMESPACE --audience scalable-topics";

const OPEN =
  "This page was not loaded by TLS: whoever is on the way to the gateway can read the token, and act in your name.";

// Ask for a token.
//
// why: what was wrong with the last one, if anything.
// entered: called once there is one.
export function signIn(why, entered) {
  const token = el("textarea", {
    id: "token",
    rows: "4",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    required: true,
    "aria-describedby": why ? "how wrong" : "how",
    "aria-invalid": why ? "true" : null,
  });
  const inTab = el("input", { type: "checkbox", id: "in-tab" });
  const submit = (event) => {
    event.preventDefault();
    keepToken(token.value.replace(/\s+/g, ""), inTab.checked);
    entered();
  };
  const form = el(
    "form",
    { class: "sign-in", on: { submit } },
    el("label", { for: "token", text: "Kubernetes token" }),
    token,
    el("p", { id: "how", class: "hint" }, "Made for audience scalable-topics, as by ", el("code", { text: HOW }), "."),
    // So are pages of this machine's own ports, which nobody else reads.
    isSecureContext ? null : el("p", { class: "wrong", text: OPEN }),
    why ? el("p", { id: "wrong", class: "wrong", text: why }) : null,
    el("p", {}, inTab, " ", el("label", { for: "in-tab", text: "Keep it until this tab is closed" })),
    el("p", {
      class: "hint",
      text: "Otherwise it is forgotten when the page is loaded again. It goes to this gateway alone, in a header.",
    }),
    el("button", { type: "submit", class: "main", text: "Show the topics" }),
  );
  return {
    title: "Sign in",
    element: el("section", {}, el("h1", { tabindex: "-1", text: "Sign in" }), form),
    first: token,
  };
}
