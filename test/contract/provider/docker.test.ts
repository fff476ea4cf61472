import { openDockerUnderTest } from './docker-under-test.ts';
import { describeProvider } from './suite.ts';

describeProvider('docker', { starts: true, shared: true }, () => openDockerUnderTest());
