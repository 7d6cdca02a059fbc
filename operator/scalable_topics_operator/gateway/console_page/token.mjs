// The reader's token: in the memory of this page, and in this tab's session if the reader wants that; nowhere else.

const KEY = "scalable-topics-token";
let kept = "";

export function readToken() {
  kept ||= sessionStorage.getItem(KEY) ?? "";
  return kept;
}

export function keepToken(token, inTab) {
  kept = token;
  if (inTab) {
    sessionStorage.setItem(KEY, token);
  } else {
    sessionStorage.removeItem(KEY);
  }
}

export function forgetToken() {
  keepToken("", false);
}
