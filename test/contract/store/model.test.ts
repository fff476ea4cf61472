import { makeModelStore } from './model-store.ts';
import { describeStore } from './suite.ts';

// The suite must not require a behaviour that only one database has.
describeStore('the model', async () => {
  const store = makeModelStore();
  const reopen = () => store.close().then(() => store);
  return { store, reopen, die: reopen, close: async () => undefined };
});
