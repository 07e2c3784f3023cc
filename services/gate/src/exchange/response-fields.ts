// Fields that steps add to the response of one request, whoever answers it.
import type { HeadWriter } from "@platform/http1";

/** A field that writes its line itself, without building strings. */
export interface PreparedField {
  readonly name: string;
  readonly value: string;
  /** Writes the line with its CRLF. */
  write(writer: HeadWriter): void;
}

/** The fields of the current request; one object per connection, reused. */
export class ResponseFields {
  readonly #fields: (readonly [name: string, value: string] | PreparedField)[] = [];

  get isEmpty(): boolean {
    return this.#fields.length === 0;
  }

  /** Adds a field; others of the same name are kept. */
  add(name: string, value: string): void {
    this.#fields.push([name, value]);
  }

  addPrepared(field: PreparedField): void {
    this.#fields.push(field);
  }

  clear(): void {
    // Setting `length` would free the array's memory each time.
    while (this.#fields.length > 0) this.#fields.pop();
  }

  /** Writes all lines to the head of a forwarded response. */
  write(writer: HeadWriter): void {
    for (const field of this.#fields) {
      if ("write" in field) field.write(writer);
      else writer.field(field[0], field[1]);
    }
  }

  /** All fields for a response of the gateway itself. */
  list(): [name: string, value: string][] {
    return this.#fields.map((field) =>
      "write" in field ? [field.name, field.value] : [field[0], field[1]],
    );
  }
}
