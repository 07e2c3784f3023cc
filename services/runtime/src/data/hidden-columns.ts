// Columns whose values are not shown, because their names say that they are secrets.

/** Default of `console_data_hidden`: parts of names. */
export const HIDDEN_DEFAULT = "password,passwd,secret,token,hash,api_key,apikey,private_key,salt";

/** Decides by the name of a column. */
export type IsHidden = (column: string) => boolean;

/** Creates the decision of a list of parts of names, separated by commas; `none` hides no column. */
export function createHidden(list: string): IsHidden {
  const parts = list
    .toLowerCase()
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "" && part !== "none");
  return (column) => {
    const name = column.toLowerCase();
    return parts.some((part) => name.includes(part));
  };
}
