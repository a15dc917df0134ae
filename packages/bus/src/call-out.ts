/**
 * Calls code of the user of this package from within the client's read loop. An error thrown there would
 * silently end all reading on the connection; it is a bug, so it surfaces as an uncaught error instead.
 */
export function callOut(fn: () => void): void {
  try {
    fn();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
