import { openFlyUnderTest } from './fly-under-test.ts';
import { describeProvider } from './suite.ts';

describeProvider('fly', { starts: true, shared: true }, () => openFlyUnderTest());
