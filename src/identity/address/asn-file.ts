import { readFile, stat } from 'node:fs/promises'
import { Fault } from '../../shared/fault.ts'
import { Mmdb, type MmdbValue } from './mmdb.ts'

/** The organisation that an autonomous system belongs to. */
export interface Network {
  readonly asn: number
  readonly name: string | null
}

/** Maps an address to its network, from an ASN database file that the operator supplies. */
export class AsnFile {
  readonly builtAtS: number
  readonly type: string
  readonly #mmdb: Mmdb

  /** Throws a Fault if the file cannot be read, is truncated, or contains no networks. */
  static async load(file: string): Promise<AsnFile> {
    const bytes = await bytesOf(file)
    try {
      return new AsnFile(bytes)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      throw new Fault('ASN_FILE_INVALID', `${file} cannot be used: ${error.message}`, { cause: error })
    }
  }

  constructor(bytes: Buffer) {
    this.#mmdb = new Mmdb(bytes)
    this.builtAtS = this.#mmdb.builtAtS
    this.type = plainText(this.#mmdb.type) ?? ''
    if (this.#mmdb.sample(SAMPLE).every((value) => networkIn(value) === null))
      throw new Fault(
        'ASN_FILE_INVALID',
        `there are no numbers of networks in it (it is of the type "${this.type}")`,
      )
  }

  /** `null`: the file has no entry for the address. */
  of(address: string): Network | null {
    return networkIn(this.#mmdb.find(address))
  }
}

/** Reads a record in the format of MaxMind and DB-IP, or in that of IPinfo. */
function networkIn(value: MmdbValue): Network | null {
  if (!(value instanceof Map)) return null
  const asn = asnIn(value.get('autonomous_system_number') ?? value.get('asn'))
  if (asn === null) return null
  const name =
    value.get('autonomous_system_organization') ?? value.get('as_name') ?? value.get('name') ?? null
  return { asn, name: typeof name === 'string' ? plainText(name) : null }
}

function asnIn(value: MmdbValue | undefined): number | null {
  const number = typeof value === 'string' && ASN_TEXT.test(value) ? Number(value.slice(2)) : value
  return typeof number === 'number' && number >= 1 && number <= ASN_MAX ? number : null
}

/** Removes control characters: the name is shown to people, in evidence. */
function plainText(text: string): string | null {
  const plain = text.replaceAll(/\p{C}/gu, '').slice(0, NAME_LENGTH_MAX).trim()
  return plain === '' ? null : plain
}

async function bytesOf(file: string): Promise<Buffer> {
  try {
    const { size } = await stat(file)
    if (size > FILE_BYTES_MAX)
      throw new Fault('ASN_FILE_INVALID', `${file} is larger than ${FILE_BYTES_MAX} bytes`)
    return await readFile(file)
  } catch (error) {
    if (error instanceof Fault) throw error
    const { code } = error as NodeJS.ErrnoException
    throw new Fault('FILE_UNREADABLE', `${file} cannot be read (${code})`, { cause: error })
  }
}

const ASN_TEXT = /^AS\d{1,10}$/
/** Largest AS number (RFC 6793). */
const ASN_MAX = 4_294_967_295
const NAME_LENGTH_MAX = 100
/** At least one of the first this many networks must have an AS number. */
const SAMPLE = 100
/** The whole file is kept in memory, once. A file with networks only has about 10 MB. */
const FILE_BYTES_MAX = 256 * 1_048_576
