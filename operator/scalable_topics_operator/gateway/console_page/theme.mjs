// Dark or light: as the system says, unless the reader has said otherwise here.

const KEY = "scalable-topics-theme";
const NAMES = { "": "as the system", light: "light", dark: "dark" };

export function startTheme(button) {
  let chosen = localStorage.getItem(KEY) ?? "";
  const show = () => {
    if (chosen) {
      document.documentElement.dataset.theme = chosen;
    } else {
      delete document.documentElement.dataset.theme;
    }
    button.textContent = `Theme: ${NAMES[chosen] ?? NAMES[""]}`;
  };
  button.addEventListener("click", () => {
    const order = Object.keys(NAMES);
    chosen = order[(order.indexOf(chosen) + 1) % order.length];
    localStorage.setItem(KEY, chosen);
    show();
  });
  show();
}
