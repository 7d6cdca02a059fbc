// Places in the console, kept behind the # of its address, and paths of the gateway. Pure.
//
// No token is ever part of either.

// The place that a fragment names: { page: "fleet" }, or { page: "topic", topic, connection, tab }.
export function placeOf(fragment) {
  const [path, query = ""] = fragment.replace(/^#/, "").split("?");
  const parts = path.split("/").filter(Boolean);
  if (parts[0] !== "topic" || parts.length !== 4) {
    return { page: "fleet" };
  }
  const search = new URLSearchParams(query);
  let topic;
  try {
    topic = parts.slice(1).map(decodeURIComponent);
  } catch {
    return { page: "fleet" };
  }
  return { page: "topic", topic, connection: search.get("connection") ?? "", tab: search.get("tab") ?? "ring" };
}

// The fragment of a topic's page.
export function fragmentOf(topic, connection, tab = "ring") {
  const query = new URLSearchParams();
  if (connection) {
    query.set("connection", connection);
  }
  if (tab !== "ring") {
    query.set("tab", tab);
  }
  const text = query.toString();
  return `#/topic/${topic.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

// Tenant, namespace and name of topic://tenant/namespace/name, or without what is before the tenant; null for what is
// no such name.
export function partsOf(name) {
  const found = /^(?:topic:\/\/)?([^/:]+)\/([^/]+)\/(.+)$/.exec(name.trim());
  return found ? found.slice(1) : null;
}

// The path of a topic in the gateway's REST, relative to where the gateway is, with a further path and a query.
export function topicPath(topic, connection, further = "", query = {}) {
  const search = new URLSearchParams(query);
  if (connection) {
    search.set("connection", connection);
  }
  const text = search.toString();
  return `admin/v2/scalable/${topic.map(encodeURIComponent).join("/")}${further}${text ? `?${text}` : ""}`;
}

// The same of a segment, such as 0000-7fff-0.
export function segmentPath(topic, connection, descriptor, further = "") {
  const query = connection ? `?${new URLSearchParams({ connection })}` : "";
  return `admin/v2/segments/${topic.map(encodeURIComponent).join("/")}/${descriptor}${further}${query}`;
}
