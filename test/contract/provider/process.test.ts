import { openProcessUnderTest } from './process-under-test.ts';
import { describeProvider } from './suite.ts';

describeProvider('process', { starts: true, shared: false }, openProcessUnderTest);
