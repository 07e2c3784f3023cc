// Networks that attempts are counted by.
import { isIP } from "node:net";

const GROUPS_OF_ADDRESS = 8;
const GROUPS_OF_NETWORK = 4;

/** The /24 of an IPv4 address or the /64 of an IPv6 address; other text is returned unchanged. */
export function networkOf(address: string): string {
  return isIP(address) === 4
    ? `${address.slice(0, address.lastIndexOf("."))}.0/24`
    : subscriberOf(address);
}

/** The IPv4 address itself, or the /64 of an IPv6 address: an IPv6 subscriber controls all addresses of a /64. */
export function subscriberOf(address: string): string {
  const [plain = ""] = address.split("%", 1);
  if (isIP(plain) !== 6) return address;
  const [head = "", tail] = plain.split("::", 2);
  const before = splitGroups(head);
  const after = splitGroups(tail ?? "");
  const zeros = tail === undefined ? 0 : GROUPS_OF_ADDRESS - before.length - after.length;
  const groups = [...before, ...Array.from({ length: zeros }, () => "0"), ...after];
  return `${groups.slice(0, GROUPS_OF_NETWORK).join(":")}::/64`;
}

function splitGroups(text: string): string[] {
  return text === ""
    ? []
    : text.split(":").flatMap((group) =>
        // The last 32 bits may be written in IPv4 notation.
        group.includes(".") ? ["0", "0"] : [Number.parseInt(group, 16).toString(16)],
      );
}
