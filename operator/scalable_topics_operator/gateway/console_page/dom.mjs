// Elements made of names, attributes and texts. A text never becomes markup, whoever has written it.

const SVG = "http://www.w3.org/2000/svg";
const drawn = new WeakMap();

// An element of HTML.
//
// attributes: "text" is its text, "on" its listeners by event; false and null leave an attribute out.
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

// An element of SVG.
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, { text, on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const [event, listener] of Object.entries(on)) {
    element.addEventListener(event, listener);
  }
  if (text !== undefined) {
    element.textContent = text;
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

// A list of terms and what is said of them.
export function terms(pairs) {
  return el(
    "dl",
    { class: "terms" },
    pairs.map(([term, said]) => el("div", {}, el("dt", { text: term }), el("dd", {}, said))),
  );
}

// How something stands, in a word with a colour.
export function badge(state) {
  return el("span", { class: `state state-${state.toLowerCase().replace(" ", "-")}`, text: state });
}

// Replace what an element holds, if it is to hold something else; what is in focus there keeps it.
export function fill(element, signature, make) {
  if (drawn.get(element) !== signature) {
    drawn.set(element, signature);
    replaceIn(element, [make()].flat(Infinity).filter(Boolean));
  }
}

// Replace what an element holds; what is in focus there keeps it, if there is such a thing again.
export function replaceIn(element, children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
  element.replaceChildren(...children);
  if (focused !== undefined) {
    element.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
  }
}

// Say something to those who hear the page.
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}
