// The text of an invalid value: in the language in use, or else the service's English sentence.
import { describeFault, type DescribedFault } from "../words/fault.ts";
import { language } from "../words/words.ts";

export function FaultText({ of }: { of: DescribedFault }) {
  const words = describeFault(of);
  if (words !== undefined) return <>{words}</>;
  return <span lang={language() === "en" ? undefined : "en"}>{of.message}</span>;
}
