/**
 * Addresses that Reveille may call on behalf of others (against SSRF). An operator may register any address except
 * link-local ones and metadata services, where clouds serve the credentials of their machines. Other users may only
 * name public addresses (a webhook, a page for a model), so that they cannot reach the operator's network through
 * Reveille. Special-purpose blocks as of RFC 6890 and its IANA registries.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Subnet = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

const listOf = (subnets: readonly string[]): readonly Subnet[] => subnets.map((subnet) => ipaddr.parseCIDR(subnet));

/** Where clouds serve the credentials of a machine, besides the link-local addresses. */
const METADATA = listOf([
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
  'fd00:ec2::254/128',
  'fd20:ce::254/128',
]);
const LINK_LOCAL = listOf(['169.254.0.0/16', 'fe80::/10']);
const LOOPBACK = listOf(['127.0.0.0/8', '::1/128']);
const PRIVATE = listOf(['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7', 'fec0::/10']);
/** Not for hosts: this network, protocol assignments, documentation, benchmarks, multicast, reserved. */
const RESERVED = listOf([
  ...[
    '0.0.0.0/8',
    '192.0.0.0/24',
    '192.0.2.0/24',
    '192.88.99.0/24',
    '198.18.0.0/15',
    '198.51.100.0/24',
    '203.0.113.0/24',
  ],
  ...['224.0.0.0/4', '240.0.0.0/4', '2001::/23', '2001:db8::/32', '3fff::/20'],
]);
/** The only IPv6 block that is assigned to hosts on the internet. */
const GLOBAL_UNICAST = listOf(['2000::/3']);

/** The IPv4 address embedded in an IPv6 address: mapped, compatible, NAT64 (RFC 6052) or 6to4. */
function embeddedIPv4(address: ipaddr.IPv6): string | undefined {
  const groups = address.parts;
  const dotted = (high: number, low: number) => [high >> 8, high & 255, low >> 8, low & 255].join('.');
  const zeros = (from: number, to: number) => groups.slice(from, to).every((group) => group === 0);
  const last = () => dotted(groups[6]!, groups[7]!);
  if (zeros(0, 5) && groups[5] === 0xffff) return last();
  if (zeros(0, 4) && groups[4] === 0xffff && groups[5] === 0) return last();
  // ::1 and :: are not IPv4-compatible addresses.
  if (zeros(0, 6) && !(groups[6] === 0 && groups[7]! <= 1)) return last();
  if (groups[0] === 0x64 && groups[1] === 0xff9b && zeros(2, 6)) return last();
  if (groups[0] === 0x2002) return dotted(groups[1]!, groups[2]!);
  return undefined;
}

type Parsed = {
  readonly isIPv6: boolean;
  readonly embedded: string | undefined;
  isIn(subnets: readonly Subnet[]): boolean;
};

function parse(address: string): Parsed | undefined {
  // The zone of an address (fe80::1%eth0) does not change its destination.
  const bare = address.split('%', 1)[0]!;
  // ipaddr.js also parses texts that Node does not accept as addresses: `127.1`, `0x7f000001`.
  if (isIP(bare) === 0) return undefined;
  const parsed = ipaddr.parse(bare);
  return {
    isIPv6: parsed.kind() === 'ipv6',
    embedded: parsed instanceof ipaddr.IPv6 ? embeddedIPv4(parsed) : undefined,
    isIn: (subnets) =>
      subnets.some(([network, bits]) => network.kind() === parsed.kind() && parsed.match(network, bits)),
  };
}

/** Why no provider may call an address, to complete the sentence "it is …"; `undefined` if it may. */
export function forbiddenAddress(address: string): string | undefined {
  const parsed = parse(address);
  if (parsed === undefined) return 'not an IP address';
  if (parsed.embedded !== undefined) return forbiddenAddress(parsed.embedded);
  if (parsed.isIn(METADATA)) return 'the metadata address of a cloud';
  return parsed.isIn(LINK_LOCAL) ? 'a link-local address' : undefined;
}

/** Why an address from any user is refused, to complete the sentence "it is …"; `undefined` if it is allowed. */
export function addressRefusal(address: string, allowPrivate: boolean): string | undefined {
  const never = forbiddenAddress(address);
  if (never !== undefined) return never;
  const parsed = parse(address)!;
  if (parsed.embedded !== undefined) return addressRefusal(parsed.embedded, allowPrivate);
  if (parsed.isIn(RESERVED)) return 'a reserved address';
  if (parsed.isIn(LOOPBACK)) return allowPrivate ? undefined : 'an address of this computer';
  if (parsed.isIn(PRIVATE)) return allowPrivate ? undefined : 'an address of a private network';
  if (parsed.isIPv6 && !parsed.isIn(GLOBAL_UNICAST)) return 'a reserved address';
  return undefined;
}
