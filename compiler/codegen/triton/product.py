"""The kernel of a matrix product: tiles of the result, sums over k on tensor cores, what follows on the sums.

    for k_start in range(0, 768, KBLOCK):
        k = k_start + tl.arange(0, KBLOCK)
        x = tl.load(x_ptr + (768 * m + k[None, :]))
        weight = tl.load(weight_ptr + (3072 * k[:, None] + n))
        product = tl.dot(x, weight, product)

or, where the tile is by descriptors (see `schedule/products/descriptors.py`),

        x = x_desc.load([m_block * MBLOCK, k_start])
        weight = weight_desc.load([k_start, n_block * NBLOCK])
        product = tl.dot(x, weight, product)

Products of one left operand have a sum each, and load that operand's tile once. Three printers of statements share one
program: of the left operand over tiles (m, k), of the right ones over (k, n), and of what is computed with the sums
over (m, n). A pointwise producer of an operand stands in the loop, between the load and the product. Half types go to
the tensor cores as they are stored, and sums are float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from compiler.codegen.naming import identifier, named_program
from compiler.codegen.rendered import RenderedKernel, TileDescriptor, launch_config
from compiler.codegen.triton.module import module_head
from compiler.codegen.triton.values.ops import DTYPES
from compiler.codegen.triton.values.statements import StatementPrinter
from compiler.codegen.triton.writer import Writer, function_head
from compiler.devices import Device
from compiler.ir.index import Dim, Indirect
from compiler.ir.size import known
from compiler.schedule.products.best_tile import tile_of
from compiler.schedule.products.descriptors import line_stride
from compiler.schedule.products.loops import Product
from compiler.schedule.products.tiles import Matrices, Tile, programs_of
from compiler.schedule.program.build import fast_program
from compiler.schedule.program.program import Program, Statement, closure
from compiler.schedule.tiles.plan import Axis, ProductPlan

#: Rows of tiles that are gone through together, column by column: programs that run at one time then load few rows and
#: few columns, which the cache keeps for all of them.
ROWS_TOGETHER = 8
#: A loop of so many turns and more stays a loop where each program has a multiprocessor to itself: the assembler takes
#: some half a second to write out one of twelve, which then takes the same time (0.976 to 1.018 for seven kernels of 96
#: programs, 1.003 in the mean). Where several come one after the other they are up to 1.06 times as slow by loops.
LEAST_TURNS = 8


def render_product(product: Product, storage: dict[str, torch.dtype], device: Device) -> RenderedKernel:
    """The kernel of `product` for `device`, by the tile that it was priced with."""
    return render_tiles(product, storage, tile_of(product, device), device.multiprocessors)


def render_tiles(product: Product, storage: dict[str, torch.dtype], tile: Tile, multiprocessors: int) -> RenderedKernel:
    """The kernel of `product` by this tile; with so many multiprocessors for its programs, quick to compile where that
    costs nothing."""
    program = named_program(fast_program(product, storage), product)
    return _ProductPrinter(product.matrices, program, tile, multiprocessors).kernel()


class _OperandPrinter(StatementPrinter):
    """Prints the statements of one operand. In its tiles k lies along another axis than in the other's, so the vector
    `k` gets its index in the tile where it is used."""

    def __init__(self, plan: ProductPlan, k_suffix: str) -> None:
        super().__init__(plan)
        self._k = f"k{k_suffix}"
        self._k_mask = f"k_mask{k_suffix}"

    def masks(self, axes: frozenset[str]) -> list[str]:
        return [self._k_mask if mask == "k_mask" else mask for mask in super().masks(axes)]

    def load_masks(self, statement: Statement, axes: frozenset[str]) -> list[str]:
        """What is outside must be zero here: it is multiplied and summed."""
        return self.masks(axes)

    def _name(self, atom: Dim | Indirect) -> str:
        return self._k if isinstance(atom, Dim) and atom.name == "k" else super()._name(atom)


class _ProductPrinter:
    def __init__(self, matrices: Matrices, program: Program, tile: Tile, multiprocessors: int) -> None:
        self.matrices, self.program, self.tile = matrices, program, tile
        self.multiprocessors = multiprocessors
        self.by_number = program.by_number
        self.sums = [s for s in program.statements if s.op == "reduce"]
        rows = Axis("m", (self.matrices.rows,), tile.m)
        columns = Axis("n", (self.matrices.columns,), tile.n)
        inner = Axis("k", (self.matrices.inner,), tile.k)
        self.rows, self.columns, self.inner = rows, columns, inner
        self.left = _OperandPrinter(self._plan(rows, inner), "[None, :]")
        self.right = _OperandPrinter(self._plan(inner, columns), "[:, None]")
        self.after = StatementPrinter(self._plan(rows, columns))
        self.writer = Writer(indent=1)
        self.descriptors: dict[str, TileDescriptor] = {}
        self.wide = ".to(tl.int64)" if self._is_wide() else ""

    def _plan(self, *axes: Axis) -> ProductPlan:
        batch = () if self.matrices.batch is None else (Axis("b", (self.matrices.batch,), 1, is_scalar=True),)
        return ProductPlan(self.program, (*batch, *axes), self.tile.warps)

    def _factors(self, total: Statement) -> tuple[Statement, Statement]:
        multiplied = self.by_number[total.operands[0]]
        assert multiplied.op == "mul"
        left, right = (self.by_number[number] for number in multiplied.operands)
        return left, right

    def _is_wide(self) -> bool:
        """Whether an offset in elements goes beyond 31 bits."""
        indices = [s.index for s in self.program.statements if s.index is not None]
        most = max(abs(known(bound)) for index in indices for bound in index.bounds)
        # The last tile may reach beyond the tensors, before its mask is looked at.
        return 2 * most >= 2**31

    def kernel(self) -> RenderedKernel:
        self._print_indices()
        self._products()
        self._results()
        parameters = self.program.parameters
        blocks = {axis.block_name: axis.block for axis in (self.rows, self.columns, self.inner)}
        functions = self.left.functions | self.right.functions | self.after.functions
        text = module_head(self.writer.text(), functions) + self._definition(parameters, list(blocks))
        lines = self.writer.numbered(text.count("\n"))
        grid = programs_of(self.matrices, self.tile)
        config = launch_config(blocks, self.tile.warps, grid, ProductPlan.label, self.tile.stages)
        name = identifier(self.program.name)
        return RenderedKernel(
            name, "triton", text + self.writer.text(), parameters, lines, config, grid=grid,
            descriptors=tuple(self.descriptors.values()),
        )  # fmt: skip

    def _definition(self, parameters: Sequence[str], blocks: Sequence[str]) -> str:
        arguments = [_descriptor(n) if n in self.descriptors else self.after.pointer(n) for n in parameters]
        arguments += [f"{name}: tl.constexpr" for name in blocks]
        names = list(dict.fromkeys(node for s in self.program.statements for node in s.nodes))
        sizes = ", ".join(f"{dim.name} < {dim.size}" for dim in self.program.space.x)
        how = {
            "half": "on tensor cores, in float32",
            "tf32": "on tensor cores, in float32 of operands rounded to TensorFloat-32",
            "ieee": "in float32",
        }[self.matrices.precision]
        loops = f"For {sizes}, by tiles: products summed over k < {self.matrices.inner.size} {how}."
        return function_head(self.program.name, arguments, loops, f"Computes {', '.join(names)}.")

    # Which tile ----------------------------------------------------------------------------------------------

    def _print_indices(self) -> None:
        """The tile of this program: `m` and `n`, and the matrix `b` of a batch."""
        line = self.writer.line
        rows, columns = known(self.rows.blocks), known(self.columns.blocks)
        program_id = "tl.program_id(0)"
        if self.matrices.batch is not None:
            line(f"program = {program_id}")
            line(f"b = program{self.wide} // {rows * columns}")
            program_id = f"program % {rows * columns}"
        self._tile_in_order(program_id, rows, columns)
        for axis, spread in ((self.rows, "[:, None]"), (self.columns, "[None, :]")):
            first = f"{axis.name}_block{self.wide} * {axis.block_name}"
            line(f"{axis.name} = {first} + tl.arange(0, {axis.block_name}){spread}")
            if not axis.is_exact:
                line(f"{axis.name}_mask = {axis.name} < {axis.numel}")

    def _tile_in_order(self, program_id: str, rows: int, columns: int) -> None:
        line = self.writer.line
        if columns == 1:
            line(f"m_block = {program_id}")
            line("n_block = 0")
        elif rows <= ROWS_TOGETHER:
            line(f"tile_number = {program_id}")
            line(f"m_block = tile_number % {rows}" if rows > 1 else "m_block = 0")
            line(f"n_block = tile_number // {rows}" if rows > 1 else "n_block = tile_number")
        else:
            band = ROWS_TOGETHER * columns
            line(f"# Bands of {ROWS_TOGETHER} rows of tiles, column by column: programs near in time share loads.")
            line(f"tile_number = {program_id}")
            line(f"first_block = tile_number // {band} * {ROWS_TOGETHER}")
            band_rows = str(ROWS_TOGETHER)
            if rows % ROWS_TOGETHER:
                line(f"band_rows = tl.minimum({rows} - first_block, {ROWS_TOGETHER})")
                band_rows = "band_rows"
            line(f"m_block = first_block + tile_number % {band} % {band_rows}")
            line(f"n_block = tile_number % {band} // {band_rows}")

    def _stays_a_loop(self) -> bool:
        if programs_of(self.matrices, self.tile) > self.multiprocessors:
            return False
        return self.inner.numel >= LEAST_TURNS * self.tile.k

    # The sums ------------------------------------------------------------------------------------------------

    def _products(self) -> None:
        line = self.writer.line
        self.writer.blank()
        for total in self.sums:
            line(f"{total.target} = tl.zeros([MBLOCK, NBLOCK], tl.float32)", total.nodes)
        turns = f"range(0, {self.inner.numel}, KBLOCK)"
        if self._stays_a_loop():
            turns = f"tl.{turns.removesuffix(')')}, loop_unroll_factor=1)"
        with self.writer.block(f"for k_start in {turns}"):
            if not self.tile.by_descriptors:
                line("k = k_start + tl.arange(0, KBLOCK)")
            if not self.inner.is_exact and not self.tile.by_descriptors:
                line(f"k_mask = k < {self.inner.numel}")
            how = f', input_precision="{self.matrices.precision}"' if self.matrices.dtype == torch.float32 else ""
            lefts: dict[int, str] = {}
            for total in self.sums:
                left, right = self._factors(total)
                if left.number not in lefts:
                    lefts[left.number] = self._operand(self.left, left)
                operands = f"{lefts[left.number]}, {self._operand(self.right, right)}"
                line(f"{total.target} = tl.dot({operands}, {total.target}{how})", total.nodes)
        self.writer.blank()

    def _operand(self, printer: _OperandPrinter, factor: Statement) -> str:
        """Print what makes an operand's tile; gives the text of the tile."""
        wanted = self.matrices.dtype
        if self.tile.by_descriptors:
            return self._copied(printer, factor)
        if factor.op == "load" and not factor.needs:
            self.writer.line(f"{factor.target} = {printer.loaded(factor, printer.all_axes)}", factor.nodes)
            is_wanted = self.program.dtype_of(factor) == wanted
            return factor.target if is_wanted else f"{factor.target}.to({DTYPES[wanted]})"
        self._print(printer, self._closure(factor))
        text = printer.operand(factor.number).tensor
        text = printer.spread(text, printer.axes_of[factor.number], printer.all_axes)
        if not self.inner.is_exact:
            # The producer of a zero need not be zero.
            text = f"tl.where({printer.masks(frozenset('k'))[0]}, {text}, 0.0)"
        return text if wanted == torch.float32 else f"({text}).to({DTYPES[wanted]})"

    def _copied(self, printer: _OperandPrinter, factor: Statement) -> str:
        """The same of one that lies in memory as it is wanted: the tile as a descriptor gives it."""
        assert factor.buffer is not None and factor.index is not None
        outer = self.rows if printer is self.left else self.columns
        axes = (outer, self.inner)
        stride = line_stride(factor.index, outer.dims[0], self.inner.dims[0], self.matrices.dtype.itemsize)
        if stride is None:
            axes = (self.inner, outer)
            stride = line_stride(factor.index, self.inner.dims[0], outer.dims[0], self.matrices.dtype.itemsize)
        assert stride is not None
        shape, tile = (known(axes[0].numel), known(axes[1].numel)), (axes[0].block, axes[1].block)
        self.descriptors[factor.buffer] = TileDescriptor(factor.buffer, shape, (stride, 1), tile)
        indices = ", ".join(
            "k_start" if axis is self.inner else f"{axis.name}_block * {axis.block_name}" for axis in axes
        )
        # What is multiplied from the left has rows first, what is from the right k.
        is_transposed = (axes[0] is self.inner) == (printer is self.left)
        text = f"{_descriptor(factor.buffer)}.load([{indices}])" + (".T" if is_transposed else "")
        self.writer.line(f"{factor.target} = {text}", factor.nodes)
        return factor.target

    def _print(self, printer: StatementPrinter, statements: Sequence[Statement]) -> None:
        for statement in statements:
            printer.note_axes(statement)
            line = printer.line(statement)
            if line is not None:
                self.writer.line(line, statement.nodes)

    def _closure(self, *roots: Statement) -> list[Statement]:
        """The roots and all that they need, in order; but nothing of what the sums need."""
        needed = closure((root.number for root in roots), self.by_number, [total.number for total in self.sums])
        return [s for s in self.program.statements if s.number in needed]

    # What follows --------------------------------------------------------------------------------------------

    def _results(self) -> None:
        """What is stored, from the sums on; what an operand needs too is loaded again."""
        for total in self.sums:
            self.after.axes_of[total.number] = self.after.all_axes
        following = self._closure(*(s for s in self.program.statements if s.op == "store"))
        self._print(self.after, [s for s in following if s not in self.sums])


def _descriptor(buffer: str) -> str:
    """The parameter that is a descriptor of the buffer."""
    return f"{identifier(buffer)}_desc"
