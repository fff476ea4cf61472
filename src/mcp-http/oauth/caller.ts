/** The verified caller of a request; the type is in `wire`, where every system may import it. */
export type { RemoteCaller, RemoteScope, TrustedIssuer } from '../../wire/remote-caller.ts';
