import { Document, visit } from 'yaml';
import { ExactInteger } from '../base/index.ts';
import { escapedSteering } from './printable.ts';

/** Texts of one line that some version may read as a number, a time or a merge: `0o17`, `1e3`, `12:30`, `<<`. */
const mayDiffer = /^([-+.0-9][^\n]*|<<|=)$/;
/** A line of blanks: in a block it could pass for its indentation. */
const hasBlankLine = /^[ \t]+$/m;
/**
 * What is written as an escape: line breaks of YAML 1.1 only, the mark that is dropped at the beginning of a text, and all else that
 * may steer a terminal.
 */
const special = /[^\P{Cc}\n\t]|[\p{Cf}\u2028\u2029]/u;

/** As the library prints integers that are no numbers of JavaScript. */
const withBigIntegers = (_key: unknown, value: unknown) => (value instanceof ExactInteger ? BigInt(value.text) : value);

/**
 * Prints a value as YAML that readers of YAML 1.1 (kubectl, Helm) and of YAML 1.2 read as the same value. Ends with a line
 * break.
 */
export function printYaml(value: unknown): string {
  // Version 1.1 quotes its own words, such as `no`. They contain those of version 1.2.
  const document = new Document(value, withBigIntegers, { version: '1.1', aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_, scalar) => {
      const { value: text } = scalar;
      if (typeof text === 'string' && (mayDiffer.test(text) || hasBlankLine.test(text) || special.test(text))) {
        scalar.type = 'QUOTE_DOUBLE';
      }
    },
  });
  return escapedSteering(document.toString());
}
