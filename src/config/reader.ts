import { isAbsolute, join } from 'node:path'
import { isSecret, type Layers, LEVEL, variablesOf } from './layers.ts'
import { type Kind, path } from './kinds.ts'
import type {
  Item,
  Items,
  List,
  SecretListSetting,
  SecretSetting,
  Section,
  SectionList,
  Setting,
  ValueOf,
} from './items.ts'
import { SETTINGS } from './schema.ts'
import { nameOf, type Problem, pointerTo } from './source.ts'
import { didYouMean } from '../shared/did-you-mean.ts'
import { Fault } from '../shared/fault.ts'
import { type DocumentProblem, Place, shown } from '../shared/problem.ts'
import { REDACTED, Secret, secretLines, secretText } from '../shared/secret.ts'

/** One effective value, as a file would have it, and its source. */
export interface Effective {
  readonly pointer: string
  readonly value: unknown
  /** A file with line and column, a variable, a flag, or `default`. */
  readonly from: string
}

/** Checks the given settings against the schema. Problems are added to the layers' problems. */
export class ConfigReader {
  readonly effective: Effective[] = []
  readonly warnings: Problem[] = []
  readonly #layers: Layers
  readonly #readSecret: (file: string) => string
  #isForUse = false

  /** `readSecret` returns the content of a file; throws a Fault. */
  constructor(layers: Layers, readSecret: (file: string) => string) {
    this.#layers = layers
    this.#readSecret = readSecret
  }

  /** Invalid settings are missing in the result: use its type only if there are no problems. */
  read(): ValueOf<typeof SETTINGS> {
    return this.#section(SETTINGS, this.#layers.fileValue, '') as ValueOf<typeof SETTINGS>
  }

  /** With the defaults of invalid settings, and without list entries that are invalid or incomplete. */
  readUsable(): ValueOf<typeof SETTINGS> {
    this.#isForUse = true
    return this.read()
  }

  warn(pointer: string, what: string): void {
    const { where, name } = this.#layers.near(pointer)
    this.warnings.push({ where, what: name === '' ? what : `${name}: ${what}` })
  }

  #section({ members }: Section<Items>, raw: unknown, pointer: string): Record<string, unknown> {
    const found = this.#members(members, raw, pointer)
    const values: Record<string, unknown> = {}
    for (const [name, item] of Object.entries(members)) {
      values[name] = this.#item(item, found, name, pointerTo(pointer, name))
    }
    return values
  }

  /** The members of a mapping in the file. A section in which everything is commented out has no members. */
  #members(known: Items, raw: unknown, pointer: string): Readonly<Record<string, unknown>> {
    if (raw === undefined || raw === null) return {}
    if (typeof raw !== 'object' || Array.isArray(raw)) {
      this.#layers.refuse(pointer, `is ${shown(raw)}; expected a mapping`)
      return {}
    }
    const names = Object.entries(known).flatMap(([name, item]) =>
      isSecret(item) ? [name, `${name}_file`] : [name],
    )
    for (const name of Object.keys(raw)) {
      if (!names.includes(name))
        this.#layers.refuse(
          pointerTo(pointer, name),
          `unknown setting${didYouMean(name, names) || elsewhere(name)}`,
        )
    }
    return raw as Readonly<Record<string, unknown>>
  }

  #item(item: Item, around: Readonly<Record<string, unknown>>, name: string, pointer: string): unknown {
    switch (item.item) {
      case 'section':
        return this.#section(item, around[name], pointer)
      case 'setting':
        return this.#setting(item, around[name], pointer)
      case 'list':
        return this.#list(item, around[name], pointer)
      case 'sections':
        return this.#sections(item, around[name], pointer)
      case 'secret':
        return this.#secret(item, around[name], around[`${name}_file`], pointer)
      case 'secrets':
        return this.#secrets(item, around[name], around[`${name}_file`], pointer)
      case 'short':
        return null // the layers have already moved it
    }
  }

  #setting(setting: Setting<unknown>, inFile: unknown, pointer: string): unknown {
    const given = this.#layers.of(pointer, inFile)
    if (given === null && setting.fallback === undefined) return this.#layers.refuse(pointer, 'is missing')
    const value = this.#value(
      setting.kind,
      given === null ? setting.fallback : given.raw,
      pointer,
      given?.level,
    )
    if (value === undefined)
      return this.#isForUse && setting.fallback !== undefined
        ? this.#value(setting.kind, setting.fallback, pointer)
        : undefined
    const risk = given === null ? null : setting.risk(value)
    if (risk !== null) this.warn(pointer, `is ${shown(given!.raw)}: ${risk}`)
    const raw = setting.kind.isPath ? value : (given?.raw ?? setting.fallback)
    this.effective.push({ pointer, value: raw, from: given?.where ?? DEFAULT })
    return value
  }

  #list(list: List<unknown>, inFile: unknown, pointer: string): readonly unknown[] {
    const given = this.#layers.of(pointer, inFile)
    const raw = given === null ? list.fallback : given.raw
    const items: readonly unknown[] = raw === null ? [] : Array.isArray(raw) ? raw : [raw]
    const values = items.map((item: unknown, index) => {
      const at = Array.isArray(raw) ? pointerTo(pointer, index) : pointer
      const value = this.#value(list.kind, item, at, given?.level)
      const risk = value === undefined || given === null ? null : list.risk(value)
      if (risk !== null) this.warn(at, `is ${shown(item)}: ${risk}`)
      return value
    })
    const shownValues = list.kind.isPath ? values : items
    this.effective.push({ pointer, value: shownValues, from: given?.where ?? DEFAULT })
    return this.#isForUse ? values.filter((value) => value !== undefined) : values
  }

  #sections({ section }: SectionList<Items>, inFile: unknown, pointer: string): readonly unknown[] {
    const given = this.#layers.of(pointer, inFile)
    const raw = given?.raw ?? []
    if (!Array.isArray(raw)) {
      this.#layers.refuse(pointer, `is ${shown(raw)}; expected a list`)
      return []
    }
    if (raw.length === 0) this.effective.push({ pointer, value: [], from: given?.where ?? DEFAULT })
    const values = raw.map((item: unknown, index) => this.#section(section, item, pointerTo(pointer, index)))
    return this.#isForUse ? values.filter((value) => !Object.values(value).includes(undefined)) : values
  }

  #secret(
    setting: SecretSetting,
    inFile: unknown,
    fileInFile: unknown,
    pointer: string,
  ): Secret<string> | null {
    const given = this.#givenSecret(inFile, fileInFile, pointer)
    this.effective.push({ pointer, value: given === null ? null : REDACTED, from: given?.from ?? DEFAULT })
    if (given === null || given.value === undefined) return null
    const value = given.file === null ? given.value : secretText(given.value as string)
    return this.#soundSecret(setting, value, given.at, given.file)
  }

  #secrets(
    setting: SecretListSetting,
    inFile: unknown,
    fileInFile: unknown,
    pointer: string,
  ): readonly Secret<string>[] {
    const given = this.#givenSecret(inFile, fileInFile, pointer)
    this.effective.push({ pointer, value: given === null ? [] : REDACTED, from: given?.from ?? DEFAULT })
    if (given === null || given.value === undefined) return []
    const { value, at, file } = given
    const values: readonly unknown[] =
      file !== null ? secretLines(value as string) : Array.isArray(value) ? value : [value]
    if (file !== null && values.length === 0) this.#layers.refuse(at, 'contains no secret')
    const sound = values.map((each, index) =>
      this.#soundSecret(setting, each, file === null ? pointerTo(pointer, index) : at, file),
    )
    return sound.filter((each) => each !== null)
  }

  /** `null`: not set. A `value` of undefined was invalid. */
  #givenSecret(inFile: unknown, fileInFile: unknown, pointer: string): GivenSecret | null {
    const direct = this.#layers.of(pointer, inFile)
    const inOther = this.#layers.of(`${pointer}_file`, fileInFile)
    if (direct !== null && inOther !== null && direct.level === inOther.level) {
      this.#layers.refuse(pointer, `and ${nameOf(`${pointer}_file`)} are both set; remove one of them`)
      return null
    }
    const given = (direct?.level ?? 0) > (inOther?.level ?? 0) ? direct : inOther
    if (given === null || given.raw === null) return null
    const from = given.where
    if (given === direct) return { value: given.raw, at: pointer, file: null, from }
    const at = `${pointer}_file`
    const file = this.#value(path, given.raw, at, given.level)
    return file === undefined
      ? { value: undefined, at, file: null, from }
      : { value: this.#textOf(file, at), at, file, from }
  }

  #soundSecret(
    { lengthMin }: SecretSetting | SecretListSetting,
    value: unknown,
    at: string,
    file: string | null,
  ): Secret<string> | null {
    if (typeof value !== 'string' || value === '') this.#layers.refuse(at, 'is not text; put it in quotes')
    else if (value.length < lengthMin)
      this.#layers.refuse(
        at,
        `is shorter than ${lengthMin} characters and could be guessed; use a longer, random secret`,
      )
    else return new Secret(value, file)
    return null
  }

  #textOf(file: string, pointer: string): string | undefined {
    try {
      return this.#readSecret(file)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      this.#layers.refuse(pointer, error.message)
      return undefined
    }
  }

  /** `undefined`: invalid. */
  #value<Value>(kind: Kind<Value>, raw: unknown, pointer: string, level?: number): Value | undefined {
    const problems: DocumentProblem[] = []
    const value = kind.read(Place.of(raw, problems)) as Value
    for (const { what } of problems) this.#layers.refuse(pointer, what)
    if (problems.length > 0) return undefined
    const isRelative = kind.isPath && level === LEVEL.file && typeof value === 'string'
    return isRelative ? (this.#inFolder(value) as Value) : value
  }

  #inFolder(file: string): string {
    return isAbsolute(file) ? file : join(this.#layers.fileFolder, file)
  }
}

interface GivenSecret {
  readonly value: unknown
  readonly at: string
  /** The file it was read from. */
  readonly file: string | null
  /** The source of the value. */
  readonly from: string
}

/** Suggests the place where a setting of this name exists. */
function elsewhere(name: string): string {
  const found = POINTERS.find((pointer) => pointer.endsWith(`/${name}`))
  return found === undefined ? '' : ` (did you mean "${nameOf(found)}"?)`
}

const DEFAULT = 'default'
const POINTERS = [...variablesOf(SETTINGS.members).values()].map(({ pointer }) => pointer)
