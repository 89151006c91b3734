import { useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import { useAsked } from '../../api/use-asked.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Confirm } from '../../parts/confirm.tsx'
import { Answered, ProblemNote } from '../../parts/states.tsx'
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
        With which access tokens are signed. They change by themselves (auth.signing_key_rotation); old ones
        are known for as long as their tokens are good.
      </p>
      {doing.problem !== null && <ProblemNote problem={doing.problem} />}
      <Answered used={used}>
        {({ signing_keys }) => (
          <div class="card">
            <Table
              label="Signing keys"
              rows={signing_keys}
              keyOf={({ kid }) => kid}
              columns={[
                { title: 'Key', cell: ({ kid }) => <code>{kid}</code> },
                { title: 'Made', isExtra: true, cell: ({ created_at }) => <FullTime at={created_at} /> },
                {
                  title: 'Signs',
                  cell: ({ signs_from }) => (
                    <>
                      from <Time at={signs_from} /> on
                    </>
                  ),
                },
              ]}
            />
          </div>
        )}
      </Answered>
      <p class="actions">
        <button type="button" disabled={doing.isDoing} onClick={() => setAsks('rotate')}>
          Change the key
        </button>
        <button type="button" class="bad" disabled={doing.isDoing} onClick={() => setAsks('drop')}>
          Change it, and drop the old ones
        </button>
      </p>
      {asks !== null && (
        <Confirm
          title={asks === 'rotate' ? 'Change the signing key?' : 'Drop the old keys?'}
          doing={asks === 'rotate' ? 'Change it' : 'Drop them'}
          isBad={asks === 'drop'}
          cancel={() => setAsks(null)}
          done={() => rotate(asks === 'drop')}
        >
          <p>
            {asks === 'rotate'
              ? 'New tokens are signed with a new key soon; those that are out stay good.'
              : 'All access tokens that are out are refused at once: their clients have to get new ones. For when a key has leaked.'}
          </p>
        </Confirm>
      )}
    </section>
  )
}
