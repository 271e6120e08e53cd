import { fieldsLookedAt } from '../managed/managed-objects.ts';
import { incomplete, type JsonMember, type JsonScan } from './json-scan.ts';

/** The relevant fields of an object or of a row of a Table. */
export interface Digest {
  /** Where it ends; `incomplete` when it is not all there. */
  readonly end: number;
  /** JSON of those fields alone that are looked at. */
  readonly digest: string;
}

const openObject = 123;
/** The field owners: often the longest part of the metadata, and irrelevant here. */
const managedFields = 'managedFields';
const longestName = Math.max(...[...fieldsLookedAt].map((name) => name.length));

/**
 * Reads an object to its end and extracts the fields that determine its owner. The result equals that of a parser: of a repeated field the
 * last counts, and an object with escaped names is kept whole.
 */
export function readObject(scan: JsonScan, bytes: Buffer, start: number): Digest {
  const kept: string[] = [];
  let isOdd = false;
  const end = scan.object(bytes, start, (keyStart, keyEnd, valueStart, isEscaped) => {
    isOdd ||= isEscaped;
    const name = keyEnd - keyStart <= longestName ? bytes.toString('latin1', keyStart, keyEnd) : '';
    if (name === 'metadata' && bytes[valueStart] === openObject) {
      const { end: valueEnd, digest, isOdd: isMetadataOdd } = readMetadata(scan, bytes, valueStart);
      isOdd ||= isMetadataOdd;
      kept.push(`"metadata":${digest}`);
      return valueEnd;
    }
    const valueEnd = scan.value(bytes, valueStart);
    if (valueEnd !== incomplete && fieldsLookedAt.has(name)) {
      kept.push(bytes.toString('utf8', keyStart - 1, valueEnd));
    }
    return valueEnd;
  });
  if (end === incomplete) {
    return { end, digest: '' };
  }
  return { end, digest: isOdd ? bytes.toString('utf8', start, end) : `{${kept.join(',')}}` };
}

/** The same for the object of a row of a Table. */
export function readRow(scan: JsonScan, bytes: Buffer, start: number): Digest {
  let object = 'null';
  let isOdd = false;
  const end = scan.object(bytes, start, (keyStart, keyEnd, valueStart, isEscaped) => {
    isOdd ||= isEscaped;
    if (bytes.toString('latin1', keyStart, keyEnd) !== 'object') {
      return scan.value(bytes, valueStart);
    }
    if (bytes[valueStart] === openObject) {
      const { end: valueEnd, digest } = readObject(scan, bytes, valueStart);
      object = digest;
      return valueEnd;
    }
    const valueEnd = scan.value(bytes, valueStart);
    object = bytes.toString('utf8', valueStart, Math.max(valueStart, valueEnd));
    return valueEnd;
  });
  if (end === incomplete) {
    return { end, digest: '' };
  }
  return { end, digest: isOdd ? bytes.toString('utf8', start, end) : `{"object":${object}}` };
}

/** All of the metadata but its {@link managedFields}. */
function readMetadata(scan: JsonScan, bytes: Buffer, start: number): Digest & { readonly isOdd: boolean } {
  const runs: string[] = [];
  let isOdd = false;
  let [runStart, runEnd] = [incomplete, incomplete];
  const closeRun = () => {
    if (runStart !== incomplete) {
      runs.push(bytes.toString('utf8', runStart, runEnd));
    }
    runStart = incomplete;
  };
  const member: JsonMember = (keyStart, keyEnd, valueStart, isEscaped) => {
    isOdd ||= isEscaped;
    const isLeftOut =
      keyEnd - keyStart === managedFields.length && bytes.toString('latin1', keyStart, keyEnd) === managedFields;
    if (isLeftOut) {
      closeRun();
    } else if (runStart === incomplete) {
      runStart = keyStart - 1;
    }
    runEnd = scan.value(bytes, valueStart);
    return runEnd;
  };
  const end = scan.object(bytes, start, member);
  if (end === incomplete) {
    return { end, digest: '', isOdd };
  }
  closeRun();
  return { end, digest: `{${runs.join(',')}}`, isOdd };
}
