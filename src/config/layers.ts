import { dirname } from 'node:path'
import { path } from './kinds.ts'
import type { Item, Items } from './items.ts'
import { SETTINGS } from './schema.ts'
import { ConfigFault, nameOf, type Problem, pointerTo, readSource, type Source } from './source.ts'
import { didYouMean } from '../shared/did-you-mean.ts'

/** The value of a setting and its source. */
interface Given {
  /** The value as a file would have it. */
  readonly raw: unknown
  /** A file with line and column, a variable, or a flag. */
  readonly where: string
  /** The setting's name at that place. Empty for variables and flags, whose own name says it. */
  readonly name: string
  readonly level: Level
}

/** The higher level wins. */
type Level = (typeof LEVEL)[keyof typeof LEVEL]
export const LEVEL = { file: 1, variable: 2, flag: 3 } as const

export type ConfigFlags = { readonly [Flag in keyof typeof FLAGS]?: readonly string[] }

export interface LayersInput {
  /** By flag name, without dashes. */
  readonly flags: ConfigFlags
  readonly env: Readonly<Record<string, string | undefined>>
  readonly file: { readonly name: string; readonly text: string } | null
  /** For a command in which a flag stands for another setting: `{ listen: '/inject/listen' }`. */
  readonly flagSettings?: { readonly [Flag in keyof typeof FLAGS]?: string }
}

/** Merges flags, variables and the file, in this order of precedence. */
export class Layers {
  readonly problems: Problem[] = []
  /** Whether the file, if given, is readable YAML. */
  readonly isReadable: boolean
  /** The whole value of the file. */
  readonly fileValue: unknown
  /** Base folder for paths in the file. */
  readonly fileFolder: string
  readonly #source: Source | null
  readonly #above = new Map<string, Given>()
  readonly #refused: string[] = []

  constructor({ flags, env, file, flagSettings = {} }: LayersInput) {
    this.#source = file === null ? null : this.#attempt(() => readSource(file.text, file.name))
    this.isReadable = file === null || this.#source !== null
    this.fileValue = this.#source?.value ?? null
    this.fileFolder = file === null ? '.' : dirname(file.name)
    const variables = variablesOf(SETTINGS.members)
    for (const [variable, text] of Object.entries(env)) this.#readVariable(variables, variable, text)
    for (const flag of Object.keys(FLAGS) as (keyof typeof FLAGS)[])
      this.#readFlag(variables, flag, flagSettings[flag] ?? FLAGS[flag], flags[flag] ?? [])
    this.#settle('/proxy/upstreams', { '/urls': '/proxy/upstream' })
    this.#settle('/proxy/tls/certificates', {
      '/cert_file': '/proxy/tls/cert_file',
      '/key_file': '/proxy/tls/key_file',
      '/key_passphrase': '/proxy/tls/key_passphrase',
      '/key_passphrase_file': '/proxy/tls/key_passphrase_file',
    })
  }

  /** The effective value of a setting that is `raw` in the file; `null`: not set anywhere. */
  of(pointer: string, raw: unknown): Given | null {
    const given = this.#above.get(pointer)
    if (given !== undefined) return given
    if (raw === undefined) return null
    const { where, name, level } = this.near(pointer)
    return { raw, where, name, level }
  }

  /** The source of this setting, or of the nearest setting around it. */
  near(pointer: string): Omit<Given, 'raw'> {
    for (let at = pointer; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
      const given = this.#above.get(at)
      if (given === undefined) continue
      const rest = nameOf(pointer.slice(at.length))
      return { ...given, name: given.level === LEVEL.flag ? '' : given.name + rest }
    }
    const where = this.#source?.place(pointer) ?? NOWHERE
    return { where, name: nameOf(pointer), level: LEVEL.file }
  }

  /** Whether a setting with this pointer, or around or inside it, has a problem. */
  hasProblemNear(pointer: string): boolean {
    return this.#refused.some((each) => each.startsWith(pointer) || pointer.startsWith(each))
  }

  refuse(pointer: string, what: string): void {
    this.#refused.push(pointer)
    const { where, name } = this.near(pointer)
    this.problems.push({ where, what: name === '' ? what : `${name}: ${what}` })
  }

  #readVariable(variables: ReadonlyMap<string, Variable>, variable: string, text: string | undefined): void {
    if (!variable.startsWith(PREFIX) || text === undefined || text === '' || NO_SETTINGS.has(variable)) return
    const known = variables.get(variable)
    if (known !== undefined) {
      const raw = this.#attempt(() => rawOf(known.item, text, variable))
      this.#above.set(known.pointer, { raw, where: variable, name: '', level: LEVEL.variable })
    } else if (!isServiceLink(variable, text)) {
      const special = [...VARIABLES].find(([pointer]) => usualVariable(pointer) === variable)?.[1]
      const near = didYouMean(special ?? variable, [...variables.keys(), CONFIG_VARIABLE])
      this.problems.push({ where: variable, what: `unknown setting${near}` })
    }
  }

  #readFlag(
    variables: ReadonlyMap<string, Variable>,
    flag: keyof typeof FLAGS,
    pointer: string,
    values: readonly string[],
  ): void {
    if (values.length === 0) return
    const { item } = variables.get(variableOf(pointer))!
    const isList = (item.item === 'short' ? item.of : item).item === 'list'
    const raw = isList ? values : rawOf(item, values.at(-1)!, flag)
    this.#above.set(pointer, { raw, where: `--${flag}`, name: '', level: LEVEL.flag })
  }

  /**
   * Moves a short form into the only element of the list it stands for, unless a higher level sets the list
   * itself. The first part is required.
   */
  #settle(list: string, parts: Readonly<Record<string, string>>): void {
    const long = this.of(list, this.#inFile(list))
    const shorts = Object.entries(parts).flatMap(([part, pointer]) => {
      const given = this.of(pointer, this.#inFile(pointer))
      return given === null || given.raw === null ? [] : [{ part, pointer, given }]
    })
    const level = Math.max(0, ...shorts.map(({ given }) => given.level))
    if (shorts.length === 0 || (long !== null && long.level > level)) return
    if (long?.level === level && long.raw !== null) {
      return this.refuse(
        shorts[0]!.pointer,
        `is the short form of ${nameOf(list)}, which is also set; remove one of them`,
      )
    }
    const [needed] = Object.values(parts)
    if (shorts[0]!.pointer !== needed)
      return this.refuse(shorts[0]!.pointer, `needs ${nameOf(needed!)} as well`)
    this.#above.set(list, { ...shorts[0]!.given, raw: [{}] })
    for (const { part, given } of shorts) this.#above.set(`${list}/0${part}`, given)
  }

  #inFile(pointer: string): unknown {
    let value = this.fileValue
    for (const token of pointer.slice(1).split('/')) {
      if (typeof value !== 'object' || value === null) return undefined
      value = (value as Record<string, unknown>)[token]
    }
    return value
  }

  #attempt<Value>(read: () => Value): Value | null {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof ConfigFault)) throw error
      this.problems.push(...error.problems)
      return null
    }
  }
}

export interface Variable {
  readonly pointer: string
  readonly item: Item
}

/** Every setting that has a variable: all except those inside lists. */
export function variablesOf(items: Items, pointer = '', found = new Map<string, Variable>()) {
  for (const [name, item] of Object.entries(items)) {
    const at = pointerTo(pointer, name)
    if (item.item === 'section') {
      variablesOf(item.members, at, found)
      continue
    }
    found.set(variableOf(at), { pointer: at, item })
    if (isSecret(item)) found.set(`${variableOf(at)}_FILE`, { pointer: `${at}_file`, item: FILE_NAME })
  }
  return found
}

/** `/proxy/limits/hello_bytes`: GATEHOUSE_PROXY_LIMITS_HELLO_BYTES. */
export function variableOf(pointer: string): string {
  return VARIABLES.get(pointer) ?? usualVariable(pointer)
}

function usualVariable(pointer: string): string {
  return PREFIX + pointer.slice(1).replaceAll('/', '_').toUpperCase()
}

export function isSecret(item: Item): boolean {
  const { item: kind } = item.item === 'short' ? item.of : item
  return kind === 'secret' || kind === 'secrets'
}

/** Converts the text of a variable or flag to the value a file would have. */
function rawOf(item: Item, text: string, variable: string): unknown {
  switch (item.item) {
    case 'short':
      return rawOf(item.of, text, variable)
    case 'setting':
      return item.kind.fromText(text)
    case 'list':
    case 'secrets':
      return text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== '')
    case 'sections':
      return readSource(text, variable).value
    case 'secret':
    case 'section':
      return text
  }
}

/**
 * Variables that Kubernetes sets in every container if a Service is named gatehouse or gatehouse-something,
 * such as GATEHOUSE_PORT=`tcp://10.0.0.1:8443`. They are not settings.
 */
function isServiceLink(variable: string, text: string): boolean {
  if (
    /_SERVICE_HOST$|_SERVICE_PORT(?:_[A-Z0-9_]+)?$|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(
      variable,
    )
  )
    return true
  return variable.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(text)
}

const PREFIX = 'GATEHOUSE_'
/** The flags of `up`, `proxy` and `check`, and the setting of each. */
export const FLAGS = {
  upstream: '/proxy/upstream',
  listen: '/proxy/listen',
  manage: '/manage/listen',
  data: '/data/dir',
  cert: '/proxy/tls/cert_file',
  key: '/proxy/tls/key_file',
  workers: '/proxy/workers',
  policy: '/policy/file',
  'log-format': '/log/format',
} as const

/** Variables whose names do not follow from the setting. */
export const VARIABLES: ReadonlyMap<string, string> = new Map([['/manage/admin_key', 'GATEHOUSE_ADMIN_KEY']])

export const CONFIG_VARIABLE = 'GATEHOUSE_CONFIG'
/** Variables for commands that talk to a running Gatehouse. They are not settings of this process. */
export const CLIENT_VARIABLES = { url: 'GATEHOUSE_URL', key: 'GATEHOUSE_KEY' } as const

const NO_SETTINGS: ReadonlySet<string> = new Set([CONFIG_VARIABLE, ...Object.values(CLIENT_VARIABLES)])
const NOWHERE = 'settings'
const FILE_NAME: Item = { item: 'setting', kind: path, about: '', fallback: null, risk: () => null }
