// As much of a page as pieces of the console are drawn on, where there is no browser.

class Element {
  constructor(name) {
    Object.assign(this, { name, attributes: {}, listeners: {}, children: [], parent: null });
    Object.assign(this, { clientWidth: 800, scrollLeft: 0, scrollWidth: 800 });
  }

  setAttribute(name, value) {
    this.attributes[name] = value;
  }

  removeAttribute(name) {
    delete this.attributes[name];
  }

  addEventListener(event, listener) {
    this.listeners[event] = listener;
  }

  contains(other) {
    return other === this || this.children.some((child) => child instanceof Element && child.contains(other));
  }

  append(...children) {
    children
      .filter((child) => child instanceof Element)
      .forEach((child) => {
        child.parent = this;
      });
    this.children.push(...children);
  }

  replaceChildren(...children) {
    this.children = [];
    this.append(...children);
  }

  replaceWith(other) {
    this.parent.children[this.parent.children.indexOf(this)] = other;
    other.parent = this.parent;
  }

  // The elements in it, itself included, in their order.
  get all() {
    return [this, ...this.children.filter((child) => child instanceof Element).flatMap((child) => child.all)];
  }
}

// Have modules make such elements.
export function pretendPage() {
  globalThis.document = {
    activeElement: null,
    createElement: (name) => new Element(name),
    createElementNS: (space, name) => new Element(name),
  };
}
