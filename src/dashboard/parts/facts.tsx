import type { ComponentChildren } from 'preact'

/** Names with values; `null` values are left out. */
export function Facts({
  of,
}: {
  readonly of: readonly (readonly [name: string, what: ComponentChildren])[]
}) {
  return (
    <dl class="facts">
      {of
        .filter(([, what]) => what !== null && what !== undefined && what !== '')
        .map(([name, what]) => (
          <>
            <dt>{name}</dt>
            <dd>{what}</dd>
          </>
        ))}
    </dl>
  )
}
