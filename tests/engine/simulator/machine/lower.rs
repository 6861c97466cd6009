//! From naga's module to a program: variables, functions and constants.

use super::{
    program::{Address, AtomicStep, Binding, Mask, Op, Program, Register, Space},
    shape::Shape,
};
use naga::{
    AddressSpace, Arena, Expression, Function, GlobalVariable, Handle, LocalVariable, Module,
    ShaderStage,
    front::wgsl::parse_str,
    valid::{Capabilities, ValidationFlags, Validator},
};
use std::{cell::RefCell, collections::HashMap, rc::Rc};

/// Registers, one per scalar, and what they are. No step changes them while the value is in use.
#[derive(Clone, Debug)]
pub struct Value {
    pub registers: Rc<[Register]>,
    pub shape: Rc<Shape>,
}

/// A pointer. It is known when the kernel is lowered, except for indices: functions are inlined.
#[derive(Clone, Debug)]
pub struct Place {
    pub address: Address,
    pub shape: Rc<Shape>,
}

/// What an expression stands for.
#[derive(Clone, Debug)]
pub enum Bound {
    Value(Value),
    Place(Place),
}

/// A jump target. It becomes the index of a step at the end.
pub type Label = usize;

/// A loop or a `switch` around a statement.
pub struct Exit {
    /// Lanes that left it.
    pub left: Mask,
    /// Lanes that went on to the next turn, and where the turn ends. A `switch` has none.
    pub next: Option<(Mask, Label)>,
}

/// A function while it is inlined.
pub struct Body<'a> {
    pub expressions: &'a Arena<Expression>,
    pub bound: HashMap<Handle<Expression>, Bound>,
    pub arguments: Vec<Bound>,
    pub locals: HashMap<Handle<LocalVariable>, Place>,
    /// Where the result goes.
    pub result: Box<[Register]>,
    /// Lanes that returned.
    pub returned: Mask,
    /// The loops and switches around the current statement, the innermost last.
    pub exits: Vec<Exit>,
    /// Conditions around the current statement within the innermost loop.
    pub conditions: u32,
    pub end: Label,
}

/// A program in the making.
pub struct Lowering<'a> {
    pub module: &'a Module,
    overrides: &'a [(&'a str, u32)],
    pub program: Program,
    labels: Vec<Option<usize>>,
    constants: HashMap<u32, Register>,
    globals: HashMap<Handle<GlobalVariable>, Place>,
}

/// The program of the compute kernel `entry`, and naga's check of its text. `overrides` has the
/// value of each constant that the pipeline sets.
pub fn lower(text: &str, entry: &str, overrides: &[(&str, u32)]) -> Result<Program, String> {
    let module = parse_str(text).map_err(|error| error.emit_to_string(text))?;
    Validator::new(ValidationFlags::all(), Capabilities::all())
        .validate(&module)
        .map_err(|error| error.emit_to_string(text))?;
    let mut points = module.entry_points.iter();
    let point = points
        .find(|point| point.name == entry && point.stage == ShaderStage::Compute)
        .ok_or_else(|| format!("no compute kernel {entry}"))?;
    let mut lowering = Lowering {
        module: &module,
        overrides,
        program: Program {
            ops: Vec::new(),
            registers: 0,
            masks: 0,
            constants: Vec::new(),
            inputs: Vec::new(),
            buffers: Vec::new(),
            workgroup_words: 0,
            workgroup_size: point.workgroup_size,
            spare: RefCell::default(),
        },
        labels: Vec::new(),
        constants: HashMap::new(),
        globals: HashMap::new(),
    };
    lowering.kernel(&point.function)?;
    Ok(lowering.finish())
}

impl<'a> Lowering<'a> {
    fn kernel(&mut self, function: &'a Function) -> Result<(), String> {
        let mut arguments = Vec::new();
        for argument in &function.arguments {
            let value = self.fresh(Shape::of(self.module, argument.ty)?);
            self.input(argument.binding.as_ref(), argument.ty, value.registers[0])?;
            arguments.push(Bound::Value(value));
        }
        for (handle, variable) in self.module.global_variables.iter() {
            if variable.space == AddressSpace::Private {
                let place = self.global(handle)?;
                let init = match variable.init {
                    Some(init) => self.global_value(init)?,
                    None => self.zero(place.shape.clone()),
                };
                self.store(&place, &init);
            }
        }
        self.inline(function, arguments, Box::default())?;
        self.emit(Op::End);
        Ok(())
    }

    /// What the entry point is told, from a register on: a number, or a structure of such.
    fn input(
        &mut self,
        binding: Option<&naga::Binding>,
        ty: Handle<naga::Type>,
        first: Register,
    ) -> Result<(), String> {
        if let Some(naga::Binding::BuiltIn(builtin)) = binding {
            self.program.inputs.push((first, *builtin));
            return Ok(());
        }
        let naga::TypeInner::Struct { members, .. } = &self.module.types[ty].inner else {
            return Err("an argument without a binding".into());
        };
        let mut next = first;
        for member in members {
            self.input(member.binding.as_ref(), member.ty, next)?;
            next += Shape::of(self.module, member.ty)?.scalars();
        }
        Ok(())
    }

    fn finish(mut self) -> Program {
        for op in &mut self.program.ops {
            if let Op::Jump(to) | Op::JumpIfNone(to) = op {
                *to = self.labels[*to].unwrap_or(usize::MAX);
            }
        }
        let constants = self.constants.iter();
        self.program.constants = constants.map(|(word, at)| (*at, *word)).collect();
        self.program
    }

    pub fn emit(&mut self, op: Op) {
        self.program.ops.push(op);
    }

    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        self.labels.len() - 1
    }

    /// The next step is the target.
    pub fn place_label(&mut self, label: Label) {
        self.labels[label] = Some(self.program.ops.len());
    }

    pub fn mask(&mut self) -> Mask {
        self.program.masks += 1;
        self.program.masks - 1
    }

    /// New registers in a row.
    pub fn row(&mut self, len: u32) -> Register {
        self.program.registers += len;
        self.program.registers - len
    }

    pub fn fresh(&mut self, shape: Rc<Shape>) -> Value {
        let len = shape.scalars();
        let first = self.row(len);
        Value {
            registers: (first..first + len).collect(),
            shape,
        }
    }

    /// The register that always holds `word`.
    pub fn constant(&mut self, word: u32) -> Register {
        if let Some(found) = self.constants.get(&word) {
            return *found;
        }
        let register = self.row(1);
        self.constants.insert(word, register);
        register
    }

    pub fn zero(&mut self, shape: Rc<Shape>) -> Value {
        let zero = self.constant(0);
        Value {
            registers: vec![zero; shape.scalars() as usize].into(),
            shape,
        }
    }

    /// Lowers a call. The lanes that are active now are active after it.
    pub fn inline(
        &mut self,
        function: &'a Function,
        arguments: Vec<Bound>,
        result: Box<[Register]>,
    ) -> Result<(), String> {
        let (returned, before, end) = (self.mask(), self.mask(), self.label());
        let mut body = Body {
            expressions: &function.expressions,
            bound: HashMap::new(),
            arguments,
            locals: HashMap::new(),
            result,
            returned,
            exits: Vec::new(),
            conditions: 0,
            end,
        };
        self.emit(Op::Save(before));
        self.emit(Op::Clear(returned));
        for (handle, variable) in function.local_variables.iter() {
            let shape = Shape::of(self.module, variable.ty)?;
            let place = self.variable(shape.clone());
            let init = match variable.init {
                Some(init) => self.value(&mut body, init)?,
                None => self.zero(shape),
            };
            self.store(&place, &init);
            body.locals.insert(handle, place);
        }
        self.block(&mut body, &function.body)?;
        self.place_label(end);
        self.emit(Op::Restore {
            from: before,
            without: Box::default(),
        });
        Ok(())
    }

    /// A variable of each invocation.
    fn variable(&mut self, shape: Rc<Shape>) -> Place {
        let first = self.row(shape.scalars());
        Place {
            address: Address {
                space: Space::Registers,
                first,
                terms: Vec::new(),
            },
            shape,
        }
    }

    pub fn global(&mut self, handle: Handle<GlobalVariable>) -> Result<Place, String> {
        if let Some(place) = self.globals.get(&handle) {
            return Ok(place.clone());
        }
        let variable = &self.module.global_variables[handle];
        let name = variable.name.clone().unwrap_or_default();
        let shape = Shape::of(self.module, variable.ty)?;
        let (space, first) = match variable.space {
            AddressSpace::Private => (Space::Registers, self.row(shape.scalars())),
            AddressSpace::WorkGroup => {
                let first = self.program.workgroup_words;
                // Vectors may begin at any word here.
                self.program.workgroup_words += shape.words();
                (Space::Workgroup, first)
            }
            AddressSpace::Uniform | AddressSpace::Storage { .. } => {
                let at = variable.binding.ok_or("a buffer without a binding")?;
                self.program.buffers.push(Binding {
                    name,
                    group: at.group,
                    binding: at.binding,
                });
                (Space::Buffer(self.program.buffers.len() - 1), 0)
            }
            space => return Err(format!("{name} in {space:?}")),
        };
        let place = Place {
            address: Address {
                space,
                first,
                terms: Vec::new(),
            },
            shape,
        };
        self.globals.insert(handle, place.clone());
        Ok(place)
    }

    /// A constant of the module.
    pub fn global_value(&mut self, handle: Handle<Expression>) -> Result<Value, String> {
        let mut body = Body {
            expressions: &self.module.global_expressions,
            bound: HashMap::new(),
            arguments: Vec::new(),
            locals: HashMap::new(),
            result: Box::default(),
            returned: 0,
            exits: Vec::new(),
            conditions: 0,
            end: 0,
        };
        self.value(&mut body, handle)
    }

    pub fn override_value(&mut self, handle: Handle<naga::Override>) -> Result<Value, String> {
        let module = self.module;
        let declared = &module.overrides[handle];
        let shape = Shape::of(module, declared.ty)?;
        let name = declared.name.as_deref().unwrap_or_default();
        match self.overrides.iter().find(|(other, _)| *other == name) {
            Some((_, value)) => {
                let word = shape.kind()?.word(f64::from(*value));
                Ok(Value {
                    registers: Rc::new([self.constant(word)]),
                    shape,
                })
            }
            None => match declared.init {
                Some(init) => self.global_value(init),
                None => Err(format!("the override {name} has no value")),
            },
        }
    }

    pub fn load(&mut self, place: &Place) -> Value {
        if let Shape::Atomic(kind) = *place.shape {
            let value = self.fresh(Rc::new(Shape::Scalar(kind)));
            self.emit(Op::Atomic {
                at: place.address.clone(),
                step: AtomicStep::Load,
                value: value.registers[0],
                result: Some(value.registers[0]),
            });
            return value;
        }
        let value = self.fresh(place.shape.clone());
        let is_packed = place.address.space == Space::Registers;
        let leaves = place.shape.leaves(is_packed);
        if is_packed && place.address.terms.is_empty() {
            let from = leaves.iter().map(|leaf| place.address.first + leaf);
            let from = from.collect();
            let to = value.registers.iter().copied().collect();
            self.emit(Op::Move { to, from });
        } else if let Some(to) = value.registers.first().copied() {
            self.emit(Op::Load {
                to,
                from: place.address.clone(),
                leaves: leaves.into(),
            });
        }
        value
    }

    pub fn store(&mut self, place: &Place, value: &Value) {
        if let Shape::Atomic(_) = *place.shape {
            self.emit(Op::Atomic {
                at: place.address.clone(),
                step: AtomicStep::Store,
                value: value.registers[0],
                result: None,
            });
            return;
        }
        let is_packed = place.address.space == Space::Registers;
        let leaves = place.shape.leaves(is_packed);
        let from = value.registers.iter().copied().collect();
        if is_packed && place.address.terms.is_empty() {
            let to = leaves.iter().map(|leaf| place.address.first + leaf);
            let to = to.collect();
            self.emit(Op::Move { to, from });
        } else {
            self.emit(Op::Store {
                to: place.address.clone(),
                from,
                leaves: leaves.into(),
            });
        }
    }
}
