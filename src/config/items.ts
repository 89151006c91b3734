import type { Kind } from './kinds.ts'
import type { Secret } from '../shared/secret.ts'

/** A named group of settings. */
export interface Section<Members extends Items> {
  readonly item: 'section'
  readonly about: string
  readonly members: Members
}

/** A single value. */
export interface Setting<Value> {
  readonly item: 'setting'
  readonly kind: Kind<Value>
  readonly about: string
  /** The default as written in a file; `undefined`: the setting is required. */
  readonly fallback: unknown
  /** Why a valid value is risky; `null`: it is not. */
  risk(value: Value): string | null
}

/** Several values of one kind. A single value counts as a list. */
export interface List<Value> {
  readonly item: 'list'
  readonly kind: Kind<Value>
  readonly about: string
  /** The default as written in a file. An empty list in a file stays empty. */
  readonly fallback: readonly string[]
  risk(value: Value): string | null
}

/** A list of sections. */
export interface SectionList<Members extends Items> {
  readonly item: 'sections'
  readonly about: string
  readonly section: Section<Members>
}

/** Never shown. It may be given as a file, with `_file` appended to its name. */
export interface SecretSetting {
  readonly item: 'secret'
  readonly about: string
  readonly lengthMin: number
}

/** Several secrets. A secrets file has one per line. */
export interface SecretListSetting {
  readonly item: 'secrets'
  readonly about: string
  readonly lengthMin: number
}

/** A short form for a part of another setting. Both at once are an error. */
interface ShortForm {
  readonly item: 'short'
  readonly of: Setting<unknown> | List<unknown> | SecretSetting
  readonly about: string
}

export type Item =
  | Section<Items>
  | Setting<unknown>
  | List<unknown>
  | SectionList<Items>
  | SecretSetting
  | SecretListSetting
  | ShortForm

export interface Items {
  readonly [name: string]: Item
}

/** The type of a setting's value in the program. */
export type ValueOf<Of> =
  Of extends Section<infer Members>
    ? { readonly [Name in keyof Members]: ValueOf<Members[Name]> }
    : Of extends SectionList<infer Members>
      ? readonly ValueOf<Section<Members>>[]
      : Of extends Setting<infer Value>
        ? Value
        : Of extends List<infer Value>
          ? readonly Value[]
          : Of extends SecretSetting
            ? Secret<string> | null
            : Of extends SecretListSetting
              ? readonly Secret<string>[]
              : null

/** Values of settings. Those that are invalid by themselves are undefined. */
export type Maybe<Values> = { readonly [Name in keyof Values]: Values[Name] | undefined }

export function section<Members extends Items>(about: string, members: Members): Section<Members> {
  return { item: 'section', about, members }
}

export function setting<Value>(
  kind: Kind<Value>,
  fallback: unknown,
  about: string,
  risk: (value: Value) => string | null = noRisk,
): Setting<Value> {
  return { item: 'setting', kind, about, fallback, risk }
}

export function list<Value>(
  kind: Kind<Value>,
  about: string,
  risk: (value: Value) => string | null = noRisk,
  fallback: readonly string[] = [],
): List<Value> {
  return { item: 'list', kind, about, fallback, risk }
}

export function sections<Members extends Items>(
  section: Section<Members>,
  about: string,
): SectionList<Members> {
  return { item: 'sections', about, section }
}

export function secret(about: string, lengthMin: number): SecretSetting {
  return { item: 'secret', about, lengthMin }
}

export function secrets(about: string, lengthMin: number): SecretListSetting {
  return { item: 'secrets', about, lengthMin }
}

export function short(of: ShortForm['of'], about: string): ShortForm {
  return { item: 'short', of, about }
}

export function noRisk(): null {
  return null
}
