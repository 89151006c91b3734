import { useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import { useAsked } from '../../api/use-asked.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Confirm } from '../../parts/confirm.tsx'
import { Answered, Empty, ProblemNote } from '../../parts/states.tsx'
import { FullTime, Time } from '../../parts/time.tsx'
import { Table } from '../../parts/table.tsx'

/** The keys that sign access tokens. */
export function SigningKeys() {
  const used = useAsked('listSigningKeys', {})
  const doing = useDoing()
  const [asks, setAsks] = useState<'rotate' | 'drop' | null>(null)
  const rotate = (dropOld: boolean) => {
    setAsks(null)
    void doing.run(async () => {
      await ask('rotateSigningKey', { body: { drop_old: dropOld } })
      used.again()
    })
  }
  return (
    <section aria-labelledby="list">
      <h2 id="list">Signing keys</h2>
      <p class="about">
        Keys that sign access tokens. They rotate automatically (auth.signing_key_rotation). An old key stays
        valid until its tokens expire.
      </p>
      {doing.problem !== null && <ProblemNote problem={doing.problem} />}
      <Answered used={used}>
        {({ signing_keys }) =>
          signing_keys.length === 0 ? (
            <Empty title="No signing keys yet">
              <p>The first one is created when Gatehouse issues its first access token.</p>
            </Empty>
          ) : (
            <div class="card">
              <Table
                label="Signing keys"
                rows={signing_keys}
                keyOf={({ kid }) => kid}
                columns={[
                  { title: 'Key', cell: ({ kid }) => <code>{kid}</code> },
                  { title: 'Created', isExtra: true, cell: ({ created_at }) => <FullTime at={created_at} /> },
                  {
                    title: 'Signs from',
                    cell: ({ signs_from }) => <Time at={signs_from} />,
                  },
                ]}
              />
            </div>
          )
        }
      </Answered>
      <p class="actions">
        <button type="button" disabled={doing.isDoing} onClick={() => setAsks('rotate')}>
          Rotate key
        </button>
        <button type="button" class="bad" disabled={doing.isDoing} onClick={() => setAsks('drop')}>
          Rotate and revoke old keys
        </button>
      </p>
      {asks !== null && (
        <Confirm
          title={asks === 'rotate' ? 'Rotate the signing key?' : 'Revoke the old keys?'}
          doing={asks === 'rotate' ? 'Rotate' : 'Revoke'}
          isBad={asks === 'drop'}
          cancel={() => setAsks(null)}
          done={() => rotate(asks === 'drop')}
        >
          <p>
            {asks === 'rotate'
              ? 'New tokens will soon be signed with a new key. Existing tokens stay valid.'
              : 'All existing access tokens become invalid at once, and clients must get new ones. Use this if a key has leaked.'}
          </p>
        </Confirm>
      )}
    </section>
  )
}
