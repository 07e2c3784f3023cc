// Loaded before a test file. The runner follows each promise with a hook, to know which test an error belongs to; that takes a
// tenth of the time of services that run in the test's process. An asynchronous context, which costs nothing, knows it as well.
import asyncHooks, { AsyncLocalStorage, AsyncResource, type HookCallbacks } from "node:async_hooks";

type Work = (...given: unknown[]) => unknown;
type Run = (this: AsyncResource, work: Work, self?: unknown, ...given: unknown[]) => unknown;

// oxlint-disable-next-line typescript/unbound-method -- it is called with a resource
const { runInAsyncScope }: { runInAsyncScope: Run } = AsyncResource.prototype;
const { createHook, executionAsyncId } = asyncHooks;
/** The runner's identifier of the test whose code runs. */
const running = new AsyncLocalStorage<number>();
const tests = new WeakSet<AsyncResource>();

// The runner's hook is the first, when the first test is declared; it learns of tests only.
asyncHooks.createHook = (callbacks: HookCallbacks) => {
  Object.assign(asyncHooks, { createHook, executionAsyncId });
  return createHook({
    ...callbacks,
    trackPromises: false,
    init: (id, type, triggerId, resource) => {
      if (type !== "Test" && type !== "Suite") return;
      if (resource instanceof AsyncResource) tests.add(resource);
      callbacks.init?.(id, type, triggerId, resource);
    },
  });
};
asyncHooks.executionAsyncId = () => running.getStore() ?? executionAsyncId();
const runTest: Run = function runTest(work, self, ...given) {
  if (!tests.has(this)) return runInAsyncScope.call(this, work, self, ...given);
  const id = this.asyncId();
  return runInAsyncScope.call(this, () => running.run(id, () => work.apply(self, given)));
};
AsyncResource.prototype.runInAsyncScope = runTest as typeof AsyncResource.prototype.runInAsyncScope;
