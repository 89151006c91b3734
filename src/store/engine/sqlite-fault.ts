import { Fault } from '../../shared/fault.ts'

/**
 * Runs `work` and converts errors of the environment to Faults. Errors of a constraint
 * or a statement stay unchanged.
 */
export function guarded<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw asFault(error)
  }
}

export function asFault(error: unknown): unknown {
  const { code, message } = error as { code?: unknown; message: string }
  for (const [start, fault, what] of FAULTS) {
    if (typeof code === 'string' && code.startsWith(start))
      return new Fault(fault, `${what} (${code}: ${message})`, { cause: error })
  }
  return error
}

/** Prefixes of codes such as SQLITE_IOERR_WRITE and SQLITE_BUSY_SNAPSHOT. */
const FAULTS = [
  ['SQLITE_FULL', 'STORE_FULL', 'there is no room left for the database'],
  ['SQLITE_BUSY', 'STORE_LOCKED', 'another program holds the database'],
  ['SQLITE_LOCKED', 'STORE_LOCKED', 'another program holds the database'],
  ['SQLITE_PROTOCOL', 'STORE_LOCKED', 'another program holds the database'],
  ['SQLITE_READONLY', 'STORE_UNAVAILABLE', 'the database cannot be written to'],
  ['SQLITE_PERM', 'STORE_UNAVAILABLE', 'the database cannot be written to'],
  ['SQLITE_IOERR', 'STORE_UNAVAILABLE', 'the database cannot be read or written'],
  ['SQLITE_CANTOPEN', 'STORE_UNAVAILABLE', 'the database cannot be opened'],
  ['SQLITE_NOLFS', 'STORE_UNAVAILABLE', 'the database is larger than its disk allows'],
  ['SQLITE_CORRUPT', 'STORE_DAMAGED', 'the database is damaged: restore a backup'],
  ['SQLITE_NOTADB', 'STORE_DAMAGED', 'the file is not a SQLite database: restore a backup'],
] as const
