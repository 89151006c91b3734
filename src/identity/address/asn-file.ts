import { readFile, stat } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { Fault } from '../../shared/fault.ts'
import { parseAddressRange } from '../../wire/address-ranges.ts'
import { Mmdb, type MmdbValue } from './mmdb.ts'

/** The organisation that an autonomous system belongs to. */
export interface Network {
  readonly asn: number
  readonly name: string | null
}

/** The same with the country that the file gives for its addresses. */
export interface PlacedNetwork extends Network {
  /** Two letters (ISO 3166-1). `null`: the file has none. */
  readonly country: string | null
}

/** Maps an address to its network, from an ASN database file that the operator supplies. */
export class AsnFile {
  readonly builtAtS: number
  readonly type: string
  readonly #mmdb: Mmdb
  /** By the place of the record. */
  readonly #known = new Map<number, PlacedNetwork | null>()
  readonly #ranges = new LRUCache<number, Promise<KeyRanges | null>>({ max: RANGES_KEPT })

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

  /**
   * The network of an address, or that of all addresses of a network. `null`: the text is neither, the file has no entry,
   * or its entries differ within the network.
   */
  ofRange(text: string): PlacedNetwork | null {
    const range = parseAddressRange(text)
    const place = range === null ? null : this.#mmdb.placeOf(range)
    return place === null ? null : this.#at(place)
  }

  /** The keys of all addresses of a network (see `addressKey`), in order. `null`: there are more ranges than `RANGES_MAX`. */
  rangesOf(asn: number): Promise<KeyRanges | null> {
    const known = this.#ranges.get(asn)
    if (known !== undefined) return known
    const found = this.#find(asn)
    this.#ranges.set(asn, found)
    return found
  }

  async #find(asn: number): Promise<KeyRanges | null> {
    const found: [first: string, last: string][] = []
    let steps = 0
    for (const { place, first, last } of this.#mmdb.ranges()) {
      if (++steps % STEPS_AT_ONCE === 0) await nextTurn()
      if (place === 0 || this.#at(place)?.asn !== asn) continue
      const before = found.at(-1)
      if (before !== undefined && isNext(before[1], first)) before[1] = last
      else if (found.length === RANGES_MAX) return null
      else found.push([first, last])
    }
    return found
  }

  #at(place: number): PlacedNetwork | null {
    const known = this.#known.get(place)
    if (known !== undefined) return known
    if (this.#known.size === KNOWN_MAX) this.#known.clear()
    const value = this.#mmdb.at(place)
    const network = networkIn(value)
    const found = network === null ? null : { ...network, country: countryIn(value) }
    this.#known.set(place, found)
    return found
  }
}

type KeyRanges = readonly (readonly [first: string, last: string])[]

/** Whether no address is between these keys. */
function isNext(last: string, first: string): boolean {
  return last[0] === first[0] && BigInt(`0x${last.slice(1)}`) + 1n === BigInt(`0x${first.slice(1)}`)
}

/** In the format of IPinfo (`country_code`, or `country` in earlier files), or in that of MaxMind. */
function countryIn(value: MmdbValue): string | null {
  if (!(value instanceof Map)) return null
  const country = value.get('country_code') ?? value.get('country')
  const code = country instanceof Map ? country.get('iso_code') : country
  return typeof code === 'string' && COUNTRY.test(code) ? code : null
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

/** Memory of some megabytes. The file of a provider has less than 100,000 networks. */
const KNOWN_MAX = 100_000
const RANGES_KEPT = 20
/** A database looks each of them up. */
const RANGES_MAX = 200
/** Some milliseconds. */
const STEPS_AT_ONCE = 20_000
const COUNTRY = /^[A-Z]{2}$/
const ASN_TEXT = /^AS\d{1,10}$/
/** Largest AS number (RFC 6793). */
const ASN_MAX = 4_294_967_295
const NAME_LENGTH_MAX = 100
/** At least one of the first this many networks must have an AS number. */
const SAMPLE = 100
/** The whole file is kept in memory, once. A file with networks only has about 10 MB. */
const FILE_BYTES_MAX = 256 * 1_048_576
