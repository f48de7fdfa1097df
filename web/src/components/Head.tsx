/** The head of a table; `numbers` are the columns whose cells stand to the right. */
export function Head({ columns, numbers = [] }: { columns: string[]; numbers?: string[] }) {
  return (
    <thead>
      <tr>
        {columns.map((name) => (
          <th key={name} scope="col" class={numbers.includes(name) ? "number" : undefined}>
            {name}
          </th>
        ))}
      </tr>
    </thead>
  );
}
