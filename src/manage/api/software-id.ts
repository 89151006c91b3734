import type { Management } from '../management.ts'

/**
 * The id that a name in a filter stands for: by the signatures in use, as in a policy, else by the catalogue. An unknown
 * name stays as it is, and nothing is found by it.
 */
export async function softwareIdOf(
  name: string,
  { snapshot, store }: Pick<Management, 'snapshot' | 'store'>,
): Promise<string> {
  const found = snapshot()?.knowledge?.names?.find(name) ?? (await store.catalogue.softwareNamed(name))
  return found?.id ?? name
}

export async function softwareIdsOf(
  names: readonly string[],
  management: Pick<Management, 'snapshot' | 'store'>,
): Promise<readonly string[]> {
  const ids: string[] = []
  for (const name of names) ids.push(await softwareIdOf(name, management))
  return [...new Set(ids)]
}
