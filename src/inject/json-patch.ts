/** The part of RFC 6902 that is used. */
export type PatchOperation =
  | { readonly op: 'add'; readonly path: string; readonly value: unknown }
  | { readonly op: 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'test'; readonly path: string; readonly value: unknown }

/** A JSON pointer to a member (RFC 6901 §3). */
export function member(pointer: string, name: string | number): string {
  return `${pointer}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** Appends to a list, which may not exist yet. */
export function appended(
  pointer: string,
  list: readonly unknown[] | null,
  values: readonly unknown[],
): PatchOperation[] {
  if (list === null) return [{ op: 'add', path: pointer, value: values }]
  return values.map((value) => ({ op: 'add', path: `${pointer}/-`, value }))
}
