/**
 * Which addresses may be gone to for somebody else: nothing that an operator registers leads to link-local addresses,
 * behind which clouds keep the credentials of their machines, and what anybody may name (a webhook, a page that a model
 * wants to read) to no more than the internet. What is refused is what an operator's network keeps inside: whoever names
 * an address must not be able to reach it through us. Special-purpose blocks as of RFC 6890 and its IANA registries.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Subnet = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

const listOf = (subnets: readonly string[]): readonly Subnet[] => subnets.map((subnet) => ipaddr.parseCIDR(subnet));

/** Where clouds keep the credentials of a machine, besides the link-local ones. */
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
/** Of IPv6 only this block is handed out to hosts of the internet. */
const GLOBAL_UNICAST = listOf(['2000::/3']);

/** The IPv4 address that an IPv6 address stands for: mapped, compatible, NAT64 (RFC 6052) or 6to4. */
function embeddedIPv4(address: ipaddr.IPv6): string | undefined {
  const groups = address.parts;
  const dotted = (high: number, low: number) => [high >> 8, high & 255, low >> 8, low & 255].join('.');
  const zeros = (from: number, to: number) => groups.slice(from, to).every((group) => group === 0);
  const last = () => dotted(groups[6]!, groups[7]!);
  if (zeros(0, 5) && groups[5] === 0xffff) return last();
  if (zeros(0, 4) && groups[4] === 0xffff && groups[5] === 0) return last();
  // ::1 and :: are no compatible addresses.
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
  // Of an address with a zone (fe80::1%eth0), the zone says nothing about where it leads.
  const bare = address.replace(/%.*$/, '');
  // The library also reads what is no address to Node: `127.1`, `0x7f000001`.
  if (isIP(bare) === 0) return undefined;
  const parsed = ipaddr.parse(bare);
  return {
    isIPv6: parsed.kind() === 'ipv6',
    embedded: parsed instanceof ipaddr.IPv6 ? embeddedIPv4(parsed) : undefined,
    isIn: (subnets) =>
      subnets.some(([network, bits]) => network.kind() === parsed.kind() && parsed.match(network, bits)),
  };
}

/** Why no provider may go to an address, in words that finish the sentence "it is …"; `undefined` when one may. */
export function neverCalled(address: string): string | undefined {
  const parsed = parse(address);
  if (parsed === undefined) return 'no IP address';
  if (parsed.embedded !== undefined) return neverCalled(parsed.embedded);
  if (parsed.isIn(METADATA)) return 'the metadata address of a cloud';
  return parsed.isIn(LINK_LOCAL) ? 'a link-local address' : undefined;
}

/**
 * What is wrong with an address that anybody may have named, in words that finish the sentence "it is …"; `undefined` when nothing
 * is.
 */
export function addressRefusal(address: string, allowPrivate: boolean): string | undefined {
  const never = neverCalled(address);
  if (never !== undefined) return never;
  const parsed = parse(address)!;
  if (parsed.embedded !== undefined) return addressRefusal(parsed.embedded, allowPrivate);
  if (parsed.isIn(RESERVED)) return 'an address that is reserved';
  if (parsed.isIn(LOOPBACK)) return allowPrivate ? undefined : 'an address of this computer';
  if (parsed.isIn(PRIVATE)) return allowPrivate ? undefined : 'an address of a private network';
  if (parsed.isIPv6 && !parsed.isIn(GLOBAL_UNICAST)) return 'an address that is reserved';
  return undefined;
}
