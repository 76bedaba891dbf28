/** The picture itself, drawn on a canvas: of eight thousand cards, those of machines that look different. */
import { type Board, type BoardNode, colourOf, conditionOf, ownerOf, type Palette, type View } from "./board";
import { cornerOf, type Layout, type Spot } from "./layout";

export interface Picture {
  board: Board;
  nodes: readonly BoardNode[];
  layout: Layout;
  view: View;
  palette: Palette;
  tones: ReadonlyMap<string, string>; // of owners
  text: string;
  quiet: string;
  warn: string;
  spot: Spot | null;
  only: string | null | undefined; // whose cards stand out; undefined: everybody's
}

/** The places of the machines to draw over what was drawn before; null when everything is to be drawn. */
export function changedRows(picture: Picture, before: Picture | null): number[] | null {
  if (!before || picture.nodes.length !== before.nodes.length || picture.board.percent !== before.board.percent) return null;
  if (JSON.stringify(picture.layout) !== JSON.stringify(before.layout)) return null;
  for (const key of ["view", "palette", "text", "quiet", "warn", "spot", "only"] as const) if (picture[key] !== before[key]) return null;
  if (picture.tones.size !== before.tones.size || [...picture.tones].some(([name, tone]) => before.tones.get(name) !== tone)) return null;
  return picture.nodes.flatMap((node, place) => (node === before.nodes[place] ? [] : [place]));
}

export function draw(context: CanvasRenderingContext2D, picture: Picture, before: Picture | null): void {
  const { nodes, layout } = picture;
  const rows = changedRows(picture, before);
  context.textBaseline = "middle";
  context.font = `${layout.row >= 16 ? 12 : 10}px ui-monospace, Menlo, Consolas, monospace`;
  if (!rows) context.clearRect(0, 0, layout.width, layout.height);
  const most = lettersIn(context, layout.label - 10);
  for (const place of rows ?? nodes.keys()) drawRow(context, picture, place, most);
  if (picture.spot) drawFrame(context, picture, picture.spot);
}

function drawRow(context: CanvasRenderingContext2D, picture: Picture, place: number, most: number): void {
  const node = picture.nodes[place];
  if (!node) return;
  const { label, block, row } = picture.layout;
  const { x } = cornerOf(picture.layout, { node: place, card: 0 });
  context.clearRect(x - label, (place % picture.layout.perColumn) * row, block, row);
  drawName(context, picture, node, place, most);
  node.cards.forEach((_, card) => drawCard(context, picture, { node: place, card }));
}

function drawName(context: CanvasRenderingContext2D, picture: Picture, node: BoardNode, place: number, most: number): void {
  const { layout } = picture;
  const { x, y } = cornerOf(layout, { node: place, card: 0 });
  const ill = node.state === "lost" || node.cards.some((card) => card.trouble);
  context.fillStyle = ill ? picture.palette.bad : node.state === "ready" ? picture.text : picture.warn;
  context.fillText(shortened(node.name, most), x - layout.label, y + layout.cell / 2);
}

const lettersIn = (context: CanvasRenderingContext2D, width: number): number => Math.max(3, Math.floor(width / context.measureText("0").width));

/** The end of a name says which machine it is, so the middle is left out. */
function shortened(name: string, most: number): string {
  return name.length <= most ? name : `${name.slice(0, Math.ceil(most / 2) - 1)}…${name.slice(name.length - Math.floor(most / 2))}`;
}

function drawCard(context: CanvasRenderingContext2D, picture: Picture, spot: Spot): void {
  const { board, nodes, layout, palette, view } = picture;
  const node = nodes[spot.node];
  const card = node?.cards[spot.card];
  if (!node || !card) return;
  const { x, y } = cornerOf(layout, spot);
  const { cell } = layout;
  const condition = conditionOf(node, card);
  const dimmed = picture.only !== undefined && ownerOf(card, board.works) !== picture.only;
  context.globalAlpha = dimmed ? 0.25 : 1;
  context.fillStyle = node.state === "ready" ? palette.free : palette.closed;
  context.fillRect(x, y, cell, cell);
  const colour = colourOf(board, node, card, view, palette, picture.tones);
  if (colour) {
    const part = view === "owner" && condition === "used" ? Math.min(1, card.used) : 1;
    const height = Math.max(2, Math.round(cell * part));
    context.fillStyle = colour;
    context.fillRect(x, y + cell - height, cell, height);
  }
  if (condition === "trouble") drawCross(context, x, y, cell, palette.free);
  else if (condition === "free" && cell >= 14) {
    context.strokeStyle = palette.edge;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, cell - 1, cell - 1);
  } else if (node.state !== "ready") drawStroke(context, x, y, cell, palette.edge);
  context.globalAlpha = 1;
}

/** Ill cards are crossed and closed ones struck through, so that colour alone says nothing. */
function drawCross(context: CanvasRenderingContext2D, x: number, y: number, cell: number, colour: string): void {
  const inset = cell / 4;
  context.strokeStyle = colour;
  context.lineWidth = Math.max(1, cell / 8);
  context.beginPath();
  context.moveTo(x + inset, y + inset);
  context.lineTo(x + cell - inset, y + cell - inset);
  context.moveTo(x + cell - inset, y + inset);
  context.lineTo(x + inset, y + cell - inset);
  context.stroke();
}

function drawStroke(context: CanvasRenderingContext2D, x: number, y: number, cell: number, colour: string): void {
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x + 1, y + cell - 1);
  context.lineTo(x + cell - 1, y + 1);
  context.stroke();
}

function drawFrame(context: CanvasRenderingContext2D, picture: Picture, spot: Spot): void {
  const { layout, palette } = picture;
  const { x, y } = cornerOf(layout, spot);
  context.strokeStyle = palette.mark;
  context.lineWidth = 2;
  context.strokeRect(x - 1, y - 1, layout.cell + 2, layout.cell + 2);
}
