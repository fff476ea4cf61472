import { makeModelStore } from './model-store.ts';
import { describeStore } from './suite.ts';

// The suite must not ask for anything that only one database happens to do.
describeStore('the model', async () => {
  const store = makeModelStore();
  return { store, reopen: async () => store, close: async () => undefined };
});
