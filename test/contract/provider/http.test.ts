import { openHttpUnderTest } from './http-under-test.ts';
import { describeProvider } from './suite.ts';

describeProvider('http', { starts: false, shared: false }, openHttpUnderTest);
