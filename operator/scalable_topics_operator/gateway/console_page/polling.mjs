// What is done again and again while its page is shown, and not while the tab is hidden.

const SLOWEST_MS = 30000;

// Do something every so often until the signal says that it is over.
//
// work: asynchronous; what it throws is told to `failed` and slows it down.
export async function poll(work, everySeconds, signal, failed) {
  let pauseMs = everySeconds * 1000;
  while (!signal.aborted) {
    try {
      await work();
      pauseMs = everySeconds * 1000;
      failed(null);
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      pauseMs = Math.min(SLOWEST_MS, pauseMs * 2);
      failed(error);
    }
    await pause(pauseMs, signal);
    await visible(signal);
  }
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}

function visible(signal) {
  if (document.visibilityState === "visible" || signal.aborted) {
    return undefined;
  }
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", resolve, { once: true, signal });
    signal.addEventListener("abort", resolve, { once: true });
  });
}
